import { utf8 } from '../../../backend/src/protocol/bytes.js'
import {
  beefOf,
  type FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../protocol/fake-chain.js'
import type { TestServer } from '../server/test-server.js'

/** Ordinals that live on a server: inscribed, and spent step by step. */
export interface Lives {
  /** Submits a transaction, which has to be taken. */
  submit(transaction: FakeTransaction, options?: Parameters<typeof beefOf>[1]): Promise<void>
  /** Spends output 0 into a 1-sat output. */
  transferred(from: FakeTransaction, lockingScript: Uint8Array): FakeTransaction
  /** An inscription of a text, or the script of one, and what becomes of it, each step submitted with the coin that it spends. */
  life(origin: string | Uint8Array, scripts: Uint8Array[]): Promise<FakeTransaction[]>
}

export function livesOn(server: TestServer, chain: FakeChain): Lives {
  const submit: Lives['submit'] = (transaction, options = {}) =>
    server.take(beefOf(transaction, options), ['tm_ordinals'])
  const transferred: Lives['transferred'] = (from, lockingScript) =>
    chain.spend({ inputs: [{ transaction: from, vout: 0 }], outputs: [{ satoshis: 1, lockingScript }] })
  const life: Lives['life'] = async (origin, scripts) => {
    const funding = chain.spend({ inputs: [], outputs: [{ satoshis: 5, lockingScript: p2pkh(0) }] })
    const lockingScript =
      typeof origin === 'string'
        ? inscriptionScript({ contentType: 'text/plain', body: utf8(origin) })
        : origin
    const first = transferred(funding, lockingScript)
    const steps = [first]
    await submit(first, { with: [funding] })
    for (const script of scripts) {
      const before = steps.at(-1) ?? first
      const next = transferred(before, script)
      await submit(next, { with: [before] })
      steps.push(next)
    }
    return steps
  }
  return { submit, transferred, life }
}
