import { connect } from 'node:net'

/** Sends bytes as they are to where a server listens, and reads what comes back, as latin1, until the connection ends. */
export async function sendRaw(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url)
  return await new Promise((resolve, reject) => {
    let text = ''
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.end(bytes, 'latin1'))
    socket.setEncoding('latin1')
    socket.on('data', (piece: string) => {
      text += piece
    })
    socket.on('end', () => resolve(text))
    socket.on('error', reject)
  })
}
