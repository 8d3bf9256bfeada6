import { connect } from 'node:net'

/** How long a connection is quiet when there is no more to come, in milliseconds. */
const QUIET = 300

/** Sends bytes as they are to where a server listens, and reads what comes back, as latin1, until the connection ends. */
export async function sendRaw(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url)
  return await new Promise((resolve, reject) => {
    let text = ''
    // Ended only when an answer has come: a server may drop a request of somebody who has hung up.
    let quiet: NodeJS.Timeout | undefined
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.write(bytes, 'latin1'))
    socket.setEncoding('latin1')
    socket.on('data', (piece: string) => {
      text += piece
      quiet ??= setTimeout(() => socket.end(), QUIET)
      quiet.refresh()
    })
    socket.on('close', () => clearTimeout(quiet))
    socket.on('end', () => resolve(text))
    socket.on('error', reject)
  })
}
