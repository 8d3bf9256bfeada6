import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/** What a DNS server says of the TXT records of a name (RFC 1035 4.1). */
export type TxtAnswer =
  /** Each record is a text, or its character strings. */
  | { records: (string | string[])[] }
  | { code: 'NXDOMAIN' | 'SERVFAIL' | 'REFUSED' }
  /** Nothing, ever. */
  | 'silence'
  /** Bytes that are no message. */
  | 'garbage'
  /** An answer to another request: to guess its id takes 65,536 tries. */
  | { forged: string }
  /** An answer of another name. */
  | { misnamed: string }
  /** Over UDP, only that there is more; over TCP, all of it. */
  | { truncated: string[] }

export interface DnsServer {
  /** As `DNS_SERVERS` takes it. */
  address: string
  /** By names in lower case. */
  answers: Map<string, TxtAnswer>
  /** The names that were asked about, in order. */
  asked: string[]
  close(): Promise<void>
}

const TXT = 16
const CODES = { NOERROR: 0, SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5 } as const
/** What UDP carries without EDNS (RFC 1035 2.3.4). */
const MAX_UDP = 512

/** A DNS server on 127.0.0.1, over UDP and TCP, that answers for TXT records: truly, or not. */
export async function dnsServer(): Promise<DnsServer> {
  const answers = new Map<string, TxtAnswer>()
  const asked: string[] = []
  const udp = createSocket('udp4')
  const tcp = createServer((socket) => {
    let received = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('data', (bytes: Buffer) => {
      received = Buffer.concat([received, bytes])
      if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return
      const reply = replyTo(received.subarray(2, 2 + received.readUInt16BE(0)), { isUdp: false })
      if (reply === undefined) return
      const length = Buffer.alloc(2)
      length.writeUInt16BE(reply.length)
      socket.end(Buffer.concat([length, reply]))
    })
  })
  const replyTo = (request: Buffer, { isUdp }: { isUdp: boolean }): Buffer | undefined => {
    const { name, question } = readQuestion(request)
    if (isUdp) asked.push(name)
    const answer = answers.get(name) ?? { code: 'NXDOMAIN' }
    if (answer === 'silence') return undefined
    if (answer === 'garbage') return Buffer.from('this is no message')
    const id = request.readUInt16BE(0)
    const message = (
      records: (string | string[])[],
      { code = CODES.NOERROR as number, isTruncated = false, of = id, about = question } = {},
    ): Buffer => {
      const head = Buffer.alloc(12)
      head.writeUInt16BE(of, 0)
      head.writeUInt16BE(0x8180 | (isTruncated ? 0x0200 : 0) | code, 2)
      head.writeUInt16BE(1, 4)
      head.writeUInt16BE(records.length, 6)
      return Buffer.concat([head, about, ...records.map(recordOf)])
    }
    if ('code' in answer) return message([], { code: CODES[answer.code] })
    if ('forged' in answer) return message([answer.forged], { of: (id + 1) & 0xffff })
    if ('misnamed' in answer)
      return message([answer.misnamed], {
        about: Buffer.concat([encodeName('other.example'), question.subarray(-4)]),
      })
    if ('truncated' in answer) return isUdp ? message([], { isTruncated: true }) : message(answer.truncated)
    const whole = message(answer.records)
    return isUdp && whole.length > MAX_UDP ? message([], { isTruncated: true }) : whole
  }
  udp.on('message', (request: Buffer, from: RemoteInfo) => {
    const reply = replyTo(request, { isUdp: true })
    if (reply !== undefined) udp.send(reply, from.port, from.address)
  })
  // Most ports in use are of TCP.
  tcp.listen(0, '127.0.0.1')
  await once(tcp, 'listening')
  const { port } = tcp.address() as AddressInfo
  udp.bind(port, '127.0.0.1')
  await once(udp, 'listening')
  return {
    ...{ address: `127.0.0.1:${port}`, answers, asked },
    async close() {
      udp.close()
      tcp.close()
      await once(tcp, 'close')
    },
  }
}

function readQuestion(request: Buffer): { name: string; question: Buffer } {
  const labels: string[] = []
  let at = 12
  for (let length = request[at] ?? 0; length > 0; length = request[at] ?? 0) {
    labels.push(request.subarray(at + 1, at + 1 + length).toString('latin1'))
    at += length + 1
  }
  return { name: labels.join('.').toLowerCase(), question: request.subarray(12, at + 5) }
}

function encodeName(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.from([label.length, ...Buffer.from(label, 'latin1')]))
  return Buffer.concat([...labels, Buffer.alloc(1)])
}

/** A TXT record of the name in question, to which a pointer leads. */
function recordOf(record: string | string[]): Buffer {
  const strings = (typeof record === 'string' ? (record.match(/[\s\S]{1,255}/g) ?? ['']) : record).map(
    (text) => Buffer.from([text.length, ...Buffer.from(text, 'latin1')]),
  )
  const data = Buffer.concat(strings)
  const head = Buffer.alloc(12)
  head.writeUInt16BE(0xc00c, 0)
  head.writeUInt16BE(TXT, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt32BE(60, 6)
  head.writeUInt16BE(data.length, 10)
  return Buffer.concat([head, data])
}
