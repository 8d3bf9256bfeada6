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
