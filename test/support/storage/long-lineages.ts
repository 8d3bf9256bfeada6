import { concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import {
  type FakeChain,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../protocol/fake-chain.js'
import { record } from './arrival.js'
import type { DerivingStore } from './engine.js'

/** The block that each transaction is in, where it does not matter. */
export const HEIGHT = 100

/** What a step of an ordinal has. */
export type Kind = 'plain' | 'inscribed' | 'map'

/** The coin that pays for it, its origin and its further steps. */
export function lineage(chain: FakeChain, kinds: Kind[]): FakeTransaction[] {
  const steps = [chain.spend({ inputs: [], outputs: [{ satoshis: 9, lockingScript: p2pkh(1) }] })]
  for (const [step, kind] of (['inscribed', ...kinds] as Kind[]).entries()) {
    const inputs = [{ transaction: steps[step] as FakeTransaction, vout: 0 }]
    steps.push(chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript: scriptOf(kind, step) }] }))
  }
  return steps
}

export function scriptOf(kind: Kind, step: number): Uint8Array {
  const owned = p2pkh(step % 5)
  if (kind === 'inscribed')
    return inscriptionScript({ contentType: 'text/plain', body: utf8(`step ${step}`) })
  return kind === 'map' ? concatBytes(owned, mapTail({ [`key ${step % 3}`]: 'x'.repeat(700) })) : owned
}

/** Records transactions one by one in a store that derives by these rules. */
export async function fill(
  opened: DerivingStore,
  transactions: FakeTransaction[],
  admission: Parameters<DerivingStore['store']['deriveBy']>[0],
): Promise<DerivingStore> {
  opened.store.deriveBy(admission)
  for (const transaction of transactions) await record(opened, { transaction, height: HEIGHT })
  return opened
}
