import type { BlockedSubject } from '../../../backend/src/graph/blocklist.js'
import type { SightingRecord } from '../../../backend/src/graph/graph-store.js'
import { concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import type { Node } from '../../../src/server/node.js'
import { IndexMaintenance } from '../../../src/server/store/index-maintenance.js'
import {
  beefOf,
  type FakeChain,
  type FakeOutput,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  OPEN_LOCK,
  p2pkh,
} from '../protocol/fake-chain.js'

/** Something that a host is asked to do, in plain text, for a file. `beef` is in hex. */
export type Deed =
  | { do: 'submit'; beef: string; topics: string[] }
  /** At the same time, so that they share writes. */
  | { do: 'submit all'; beefs: string[]; topics: string[] }
  | { do: 'evict'; outpoint: string }
  | ({ do: 'block' } & BlockedSubject)
  | ({ do: 'sight' } & SightingRecord)
  | { do: 'reindex' }

/** Has a node do it. */
export async function does({ overlay, graph, maintenance }: Node, deed: Deed): Promise<void> {
  if (deed.do === 'reindex') {
    // The index of facts is derived again by `minetree build-index` alone.
    if (maintenance instanceof IndexMaintenance) await maintenance.rebuild()
  } else if (deed.do === 'evict') await graph.evict(parseOutpoint(deed.outpoint))
  else if (deed.do === 'sight') await graph.sightings.record([deed])
  else if (deed.do === 'block') {
    const { kind, value } = deed
    await graph.blocklist.add({ kind, value, reason: 'for a test', since: Date.now() })
  } else {
    const beefs = deed.do === 'submit' ? [deed.beef] : deed.beefs
    await Promise.all(
      beefs.map((beef) =>
        overlay.engine.submit({ beef: Uint8Array.from(Buffer.from(beef, 'hex')), topics: deed.topics }),
      ),
    )
  }
}

const BOTH = Object.values(TOPICS)
const KiB = 1024

/** Every kind of write that there is, as few times as it takes: of a host that follows the chain's tree. */
export function everyDeed(chain: FakeChain): Deed[] {
  const hexOf = (...beef: Parameters<typeof beefOf>): string => Buffer.from(beefOf(...beef)).toString('hex')
  const submit = (...beef: Parameters<typeof beefOf>): Deed => ({
    ...{ do: 'submit', beef: hexOf(...beef) },
    topics: BOTH,
  })
  const coin = (lockingScript: Uint8Array, satoshis = 1): FakeOutput => ({ satoshis, lockingScript })
  const next = (transaction: FakeTransaction, ...outputs: FakeOutput[]): FakeTransaction =>
    chain.spend({ inputs: [{ transaction, vout: 0 }], outputs })

  // An ordinal that goes on: with a stream chunk that is stored in several chunks, and with MAP that is kept merged.
  const first = chain.inscribe({ contentType: 'video/mp4', body: utf8('first'), suffix: mapTail({ a: '1' }) })
  const body = new Uint8Array(300 * KiB).fill(7)
  const chunk = next(first, coin(inscriptionScript({ contentType: 'gw/stream', body })))
  const said = next(chunk, coin(concatBytes(p2pkh(4), mapTail({ a: 'x'.repeat(3 * KiB) }))))

  // A name and its competing mint, which a block decides for; and what is built on the loser.
  const node = chain.node('')
  const purse = chain.spend({ inputs: [], outputs: [coin(OPEN_LOCK, 1000)] })
  const funding = [{ transaction: purse, vout: 0 }]
  const lost = chain.mint('b', { from: node, ownerLock: OPEN_LOCK, funding })
  const built = chain.spend({ inputs: [{ transaction: lost, vout: 2 }], outputs: [coin(OPEN_LOCK)] })
  const mint = chain.mint('a')

  // One that is burnt, by a transaction that admits nothing; and one that is not wanted.
  const burnt = chain.inscribe({ contentType: 'text/plain', body: utf8('burnt') })
  const burn = next(burnt, coin(p2pkh(9), 5))
  const unwanted = chain.inscribe({
    contentType: 'text/plain',
    body: utf8('no'),
    suffix: mapTail({ b: '2' }),
  })
  // Some that come together: a child before its parent, and others that have nothing to do with them.
  const parent = chain.mint('aa')
  const child = chain.mint('aab')
  const note = chain.inscribe({ contentType: 'text/plain', body: utf8('note') })
  const moved = next(note, coin(p2pkh(5)))
  const together: Deed = {
    do: 'submit all',
    beefs: [hexOf(child, { with: [parent] }), hexOf(parent), hexOf(moved, { with: [note] }), hexOf(note)],
    topics: BOTH,
  }
  return [
    submit(chain.genesis),
    submit(lost, { proven: false, with: [chain.genesis, purse] }),
    submit(built, { proven: false, with: [chain.genesis, purse, lost], unproven: [lost] }),
    submit(mint, { with: [chain.genesis] }),
    together,
    submit(first),
    submit(chunk, { with: [first] }),
    submit(said, { with: [chunk] }),
    submit(burnt),
    submit(burn, { with: [burnt] }),
    submit(unwanted),
    { do: 'evict', outpoint: unwanted.outpoint(0) },
    // What the ordinal said there, it says no more further on.
    { do: 'block', kind: 'outpoint', value: first.outpoint(0) },
    { do: 'block', kind: 'name', value: 'a' },
    { do: 'sight', txid: lost.txid, status: 'rejected' },
  ]
}
