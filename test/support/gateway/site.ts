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
    expect((await server.submit(beefOf(transaction), ['tm_ordinals'])).status).toBe(200)
    return transaction
  }
}
