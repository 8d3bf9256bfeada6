import { utf8 } from '../../../backend/src/protocol/bytes.js'
import {
  beefOf,
  type FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../protocol/fake-chain.js'
import type { TestServer } from '../server/test-server.js'

/** What an output inscribes. */
export interface File {
  contentType: string
  body: Uint8Array
}

export const DIRECTORY = 'gw-fs/json'

export const text = (body: string, contentType = 'text/plain'): File => ({ contentType, body: utf8(body) })

/** A directory, its map given as an object or as it is to be written. */
export function directory(map: Record<string, string> | string, contentType = DIRECTORY): File {
  return text(typeof map === 'string' ? map : JSON.stringify(map), contentType)
}

/** A directory in bytes (`docs/spec/protocol.md`, Directories), from names to pointers `_N` or `<txid>_N`; some are symbolic links. */
export function binaryDirectory(map: Record<string, string>, links: readonly string[] = []): File {
  const entries = Object.entries(map).map(([name, pointer]) => {
    const [txid = '', vout = ''] = pointer.split('_')
    const index = Buffer.alloc(4)
    index.writeUInt32LE(Number(vout))
    const target = txid === '' ? index.subarray(0, 1) : [...Buffer.from(txid, 'hex').reverse(), ...index]
    const flags = (links.includes(name) ? 4 : 0) + (txid === '' ? 0 : 8)
    return { key: utf8(name), flags, target: [...target] }
  })
  entries.sort((one, other) => Buffer.compare(one.key, other.key))
  const written = entries.flatMap(({ key, flags, target }) => [flags, key.length, ...key, ...target])
  const body = Uint8Array.from([1, entries.length >> 8, entries.length & 255, ...written])
  return { contentType: 'ordfs/dir', body }
}

/** A file, or the same directory in bytes. */
export function inBytes(file: File, links: readonly string[] = []): File {
  if (file.contentType !== DIRECTORY) return file
  return binaryDirectory(JSON.parse(Buffer.from(file.body).toString('utf8')), links)
}

/** A folder as files of one transaction, the root directory first: from paths to what is there, a text by the ending of its name. */
export function folder(files: Record<string, string | File>): File[] {
  const laidOut: File[] = []
  const lay = (prefix: string): number => {
    const at = laidOut.push(directory({})) - 1
    const map: Record<string, string> = {}
    for (const [path, file] of Object.entries(files)) {
      const [name = '', ...below] = path.startsWith(prefix) ? path.slice(prefix.length).split('/') : []
      if (name === '' || map[name] !== undefined) continue
      const place = below.length > 0 ? lay(`${prefix}${name}/`) : laidOut.push(fileOf(name, file)) - 1
      map[name] = `_${place}`
    }
    laidOut[at] = directory(map)
    return at
  }
  lay('')
  return laidOut
}

const TYPES: Record<string, string> = {
  html: 'text/html',
  css: 'text/css',
  js: 'text/javascript',
  svg: 'image/svg+xml',
}

function fileOf(name: string, file: string | File): File {
  return typeof file === 'string' ? text(file, TYPES[name.replace(/^.*\./, '')] ?? 'text/plain') : file
}

/** Publishes on a server. What it gives puts files into the outputs of one transaction; a lock alone is no file. */
export function publisher({
  server,
  chain,
}: {
  server: TestServer
  chain: FakeChain
}): (...files: (File | 'lock')[]) => Promise<FakeTransaction> {
  return async (...files) => {
    const scripts = files.map((file) => (file === 'lock' ? p2pkh(1) : inscriptionScript(file)))
    const transaction = chain.spend({
      inputs: [],
      outputs: scripts.map((lockingScript) => ({ satoshis: 1, lockingScript })),
    })
    await server.take(beefOf(transaction), ['tm_ordinals'])
    return transaction
  }
}
