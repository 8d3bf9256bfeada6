import { encodeBeef } from '../../../../backend/src/graph/write-beef.js'
import { concatBytes, fromHex, joinBytes, utf8 } from '../../../../backend/src/protocol/bytes.js'
import { readTransaction } from '../../../../backend/src/protocol/transaction.js'
import {
  beefOf,
  type FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { varint } from '../../../support/protocol/raw-transaction.js'
import { ANYONE, bareTransaction, pick, proofOf } from '../../../support/protocol/transactions.js'
import { type Attack, type HostileRequest, type RequestOf, submitting } from '../attack.js'
import { confirmed } from '../proven-blocks.js'

const MiB = 1024 * 1024

/** Outputs of one satoshi that each hold content, as small as they can be. */
function tinyInscriptions(count: number): { satoshis: number; lockingScript: Uint8Array }[] {
  const lockingScript = inscriptionScript({ lock: ANYONE, body: Uint8Array.of(0x61) })
  return Array.from({ length: count }, () => ({ satoshis: 1, lockingScript }))
}

/** Many inscriptions in one transaction, their values known. */
function inscribedTogether(
  chain: FakeChain,
  count: number,
): { coin: FakeTransaction; many: FakeTransaction } {
  const outputs = [{ satoshis: count + 1, lockingScript: ANYONE }]
  const coin = bareTransaction({ inputs: [chain.madeUpCoin()], outputs })
  const inputs = [{ txid: coin.txid, vout: 0 }]
  return { coin, many: bareTransaction({ inputs, outputs: tinyInscriptions(count) }) }
}

/** The request that submits a mint with its merkle path. */
function provenMint(mint: Pick<FakeTransaction, 'txid' | 'raw' | 'height'>): HostileRequest {
  const beef = encodeBeef([{ raw: mint.raw, proof: confirmed(proofOf(mint)) }])
  return submitting(beef, { 'X-Topics': '["tm_names"]' })
}

/** A mint of one input, with more behind it that spend what nobody knows: the covenant looks at its own input alone. */
function withInputs(mint: FakeTransaction, count: number): Pick<FakeTransaction, 'txid' | 'raw' | 'height'> {
  const [own] = mint.transaction.inputs
  if (own === undefined) throw new Error('a mint spends a node')
  const more = new Uint8Array(41 * (count - 1))
  const view = new DataView(more.buffer)
  for (let at = 0; at < count - 1; at++) view.setUint32(41 * at + 1, at + 1)
  const script = own.unlockingScript.length
  const first = 4 + 1 + 36 + varint(script).length + script + 4
  const raw = concatBytes(
    mint.raw.subarray(0, 4),
    varint(count),
    mint.raw.subarray(5, first),
    more,
    mint.raw.subarray(first),
  )
  return { ...readTransaction(raw), height: mint.height }
}

/** Shapes of transactions and BEEFs that take the most work to admit. */
export function graphAttacks({
  parts = 2400,
  transactions = 10_000,
  depth = 1000,
  pending = 3000,
  steps = 2000,
  largeBytes = 60 * MiB,
  leaves = 300_000,
  mintOutputs = 3_900_000,
  mintInputs = 20_000,
}: Partial<
  Record<
    | 'parts'
    | 'transactions'
    | 'depth'
    | 'pending'
    | 'steps'
    | 'largeBytes'
    | 'leaves'
    | 'mintOutputs'
    | 'mintInputs',
    number
  >
> = {}): Attack[] {
  return [
    {
      name: 'inscriptions',
      title: `${parts} inscriptions in one transaction`,
      prepare:
        ({ chain }) =>
        () => {
          const { coin, many } = inscribedTogether(chain, parts)
          return submitting(beefOf(many, { with: [coin] }))
        },
      allowance: { requests: 20, connections: 20 },
      statuses: [200, 413, 429, 503],
    },
    {
      name: 'mint-outputs',
      title: `a mint in a block, with ${mintOutputs} outputs`,
      checksProofs: true,
      async prepare({ chain, admit }) {
        await admit(chain.genesis)
        const trailing = new Array(mintOutputs).fill({ satoshis: 0, lockingScript: new Uint8Array() })
        const mint = provenMint(chain.mint('a', { from: chain.node(''), trailing }))
        return () => mint
      },
      allowance: { requests: 3, connections: 3 },
      statuses: [200, 429, 503],
    },
    {
      name: 'mint-inputs',
      title: `a mint in a block, with ${mintInputs} inputs`,
      checksProofs: true,
      async prepare({ chain, admit }) {
        await admit(chain.genesis)
        const mint = provenMint(
          withInputs(chain.mint('a', { from: chain.node(''), funding: [] }), mintInputs),
        )
        return () => mint
      },
      allowance: { requests: 3, connections: 3 },
      statuses: [200, 429, 503],
    },
    {
      name: 'moves',
      title: `a transaction that moves ${parts} inscriptions of another one`,
      async prepare({ chain, admit }) {
        const moves: FakeTransaction[] = []
        for (let index = 0; index < 3; index++) {
          const { coin, many } = inscribedTogether(chain, parts)
          await admit(many, [coin])
          const inputs = Array.from({ length: parts }, (_, vout) => ({ txid: many.txid, vout }))
          const outputs = inputs.map(() => ({ satoshis: 1, lockingScript: ANYONE }))
          moves.push(bareTransaction({ inputs, outputs }))
        }
        return (index) => submitting(beefOf(pick(moves, index)))
      },
      allowance: { requests: 3, connections: 3 },
      statuses: [200, 413, 429, 503],
    },
    {
      name: 'unknown-inputs',
      title: `a transaction with ${parts} inputs that nobody knows`,
      prepare:
        ({ chain }) =>
        () => {
          const inputs = Array.from({ length: parts }, () => chain.madeUpCoin())
          return submitting(beefOf(bareTransaction({ inputs, outputs: tinyInscriptions(parts) })))
        },
      allowance: { requests: 20, connections: 20 },
      statuses: [200, 413, 429, 503],
    },
    {
      name: 'sources-one-by-one',
      title: `the sources of a transaction with ${parts} inputs, one by one`,
      async prepare({ chain, admit }) {
        const sources = Array.from({ length: parts }, () =>
          bareTransaction({ inputs: [chain.madeUpCoin()], outputs: tinyInscriptions(1) }),
        )
        const inputs = sources.map(({ txid }) => ({ txid, vout: 0 }))
        await admit(bareTransaction({ inputs, outputs: tinyInscriptions(parts) }))
        return (index) => submitting(beefOf(pick(sources, index)))
      },
      allowance: { requests: 600, connections: 20 },
      statuses: [200, 429, 503],
    },
    {
      name: 'parent-of-many',
      title: `the parent for which ${pending} transactions wait`,
      async prepare({ chain, admit }) {
        const parents: { coin: FakeTransaction; many: FakeTransaction }[] = []
        for (let index = 0; index < 2; index++) {
          const parent = inscribedTogether(chain, pending)
          for (let vout = 0; vout < pending; vout++) {
            const inputs = [{ txid: parent.many.txid, vout }]
            await admit(bareTransaction({ inputs, outputs: [{ satoshis: 1, lockingScript: p2pkh(vout) }] }))
          }
          parents.push(parent)
        }
        return (index) => {
          const { coin, many } = pick(parents, index)
          return submitting(beefOf(many, { with: [coin] }))
        }
      },
      allowance: { requests: 2, connections: 2 },
      statuses: [200, 429, 503],
    },
    {
      name: 'tip-first',
      title: `the origin of a lineage of ${steps} steps that came tip first`,
      async prepare({ chain, admit }) {
        const lives: FakeTransaction[][] = []
        for (let index = 0; index < 2; index++) {
          const life = lifeOf(chain, steps)
          for (const step of [...life].reverse().slice(0, -2)) await admit(step)
          lives.push(life)
        }
        return (index) => {
          const [coin, origin] = pick(lives, index)
          if (coin === undefined || origin === undefined) throw new Error('a life has steps')
          return submitting(beefOf(origin, { with: [coin] }))
        }
      },
      allowance: { requests: 2, connections: 2 },
      statuses: [200, 429, 503],
    },
    {
      name: 'reorganised-branch',
      title: `the proven double spend of an unproven transaction on which ${pending} others are built`,
      async prepare({ chain, submit }) {
        const doubleSpends: FakeTransaction[] = []
        for (let index = 0; index < 2; index++) {
          const outputs = [{ satoshis: pending + 1, lockingScript: OPEN_LOCK }]
          const coin = bareTransaction({ inputs: [chain.madeUpCoin()], outputs })
          const inputs = [{ outpoint: { txid: coin.txid, vout: 0 }, unlockingScript: ANYONE }]
          const root = bareTransaction({ inputs, outputs: tinyInscriptions(pending) })
          const isSpent = { proven: false, with: [coin, root], unproven: [root] }
          const aCoin = [{ satoshis: 1, lockingScript: OPEN_LOCK }]
          for (let vout = 0; vout < pending; vout++)
            await submit(
              beefOf(bareTransaction({ inputs: [{ txid: root.txid, vout }], outputs: aCoin }), isSpent),
            )
          doubleSpends.push(bareTransaction({ inputs, outputs: [{ satoshis: 2, lockingScript: ANYONE }] }))
        }
        return (index) => submitting(beefOf(pick(doubleSpends, index)))
      },
      allowance: { requests: 2, connections: 2 },
      statuses: [200, 429, 503],
    },
    {
      name: 'losers',
      title: 'double spends of one coin, of which the first counts',
      async prepare({ chain, submit }) {
        const coin = openCoin(chain)
        const spending = (n: number) => beefOf(openNote(coin, n), { proven: false, with: [coin] })
        await submit(spending(0))
        return (index) => submitting(spending(index + 1))
      },
      allowance: { requests: 600, connections: 100 },
      statuses: [200, 409, 429, 503],
    },
    {
      name: 'loser-chain',
      title: `a chain of ${depth} transactions on a double spend that lost, one after the other`,
      async prepare({ chain, submit }) {
        const coin = openCoin(chain)
        await submit(beefOf(openNote(coin, 0), { proven: false, with: [coin] }))
        return growing(coin, depth)
      },
      allowance: { requests: 600, connections: 20 },
      statuses: [409, 429, 503],
    },
    {
      name: 'payment-chain',
      title: `a chain of ${depth} unproven payments, one after the other`,
      prepare: ({ chain }) => growing(openCoin(chain), depth),
      allowance: { requests: 600, connections: 20 },
      statuses: [200, 429, 503],
    },
    {
      name: 'wrong-work',
      title: 'mints whose work is wrong',
      async prepare({ chain, admit }) {
        await admit(chain.genesis)
        const from = chain.node('')
        return (index) => {
          const mint = chain.mint(`${String.fromCharCode(97 + (index % 26))}${index}`, {
            from,
            badWork: true,
          })
          return submitting(beefOf(mint, { proven: false, with: [chain.genesis] }), {
            'X-Topics': '["tm_names"]',
          })
        }
      },
      allowance: { requests: 600, connections: 100 },
      statuses: [200, 400, 429, 503],
    },
    {
      name: 'reinscribed-tip-first',
      title: `an ordinal that says something at each of ${steps} steps, each submitted before the one that it received`,
      async prepare({ chain, admit }) {
        const first = bareTransaction({ inputs: [chain.madeUpCoin()], outputs: tinyInscriptions(1) })
        const life = [first]
        while (life.length < steps + 50) {
          const inputs = [{ txid: pick(life, life.length - 1).txid, vout: 0 }]
          life.push(bareTransaction({ inputs, outputs: tinyInscriptions(1) }))
        }
        for (const step of life.slice(50)) await admit(step)
        return (index) => submitting(beefOf(pick(life, 49 - (index % 50))))
      },
      allowance: { requests: 49, connections: 20 },
      statuses: [200, 429, 503],
    },
    {
      name: 'blank-coins',
      title: `an inscription on a coin that went through ${steps} transactions without content`,
      async prepare({ chain, admit }) {
        const lives: FakeTransaction[] = []
        for (let index = 0; index < 2; index++) {
          let tip = bareTransaction({
            inputs: [chain.madeUpCoin()],
            outputs: [{ satoshis: 1, lockingScript: ANYONE }],
          })
          for (let step = 0; step < steps; step++) {
            await admit(tip)
            const inputs = [{ txid: tip.txid, vout: 0 }]
            tip = bareTransaction({ inputs, outputs: [{ satoshis: 1, lockingScript: ANYONE }] })
          }
          await admit(tip)
          const inputs = [{ txid: tip.txid, vout: 0 }]
          lives.push(bareTransaction({ inputs, outputs: tinyInscriptions(1) }))
        }
        return (index) => submitting(beefOf(pick(lives, index)))
      },
      allowance: { requests: 2, connections: 2 },
      statuses: [200, 429, 503],
    },
    {
      name: 'deep-beefs',
      title: `BEEFs of ${depth} unproven transactions, one upon the other`,
      prepare:
        ({ chain }) =>
        () => {
          const members = [openCoin(chain)]
          for (let at = 1; at <= depth; at++) {
            const { txid } = pick(members, at - 1)
            members.push(openSpend([{ txid, vout: 0 }], 1))
          }
          const subject = pick(members, depth)
          const ancestors = members.slice(0, -1)
          return submitting(beefOf(subject, { proven: false, with: ancestors, unproven: ancestors.slice(1) }))
        },
      allowance: { requests: 100, connections: 100 },
      statuses: [200, 400, 413, 429, 503],
    },
    {
      name: 'dense-beefs',
      title: `BEEFs of ${transactions} transactions, each spending two of the one before`,
      prepare:
        ({ chain }) =>
        () => {
          const width = Math.ceil(transactions / depth)
          const rows = [Array.from({ length: width }, () => openCoin(chain, width))]
          while (rows.length < depth) {
            const above = rows.at(-1) ?? []
            rows.push(
              above.map((_, place) =>
                openSpend(
                  above.map(({ txid }) => ({ txid, vout: place })),
                  width,
                ),
              ),
            )
          }
          const members = rows.flat()
          const inputs = (rows.at(-1) ?? []).map(({ txid }) => ({ txid, vout: 0 }))
          const coins = rows[0] ?? []
          return submitting(
            beefOf(openSpend(inputs, 1), {
              proven: false,
              with: members,
              unproven: members.slice(coins.length),
            }),
          )
        },
      allowance: { requests: 20, connections: 20 },
      statuses: [200, 400, 413, 429, 503],
    },
    {
      name: 'wide-bumps',
      title: `a merkle path of ${leaves} leaves`,
      prepare:
        ({ chain }) =>
        () =>
          submitting(wideBump(openCoin(chain), leaves)),
      allowance: { requests: 20, connections: 20 },
      statuses: [200, 400, 413, 429, 503],
    },
    {
      name: 'large-transactions',
      title: `transactions of ${Math.round(largeBytes / MiB)} MiB`,
      prepare: ({ chain }) => {
        const body = new Uint8Array(largeBytes).map((_, at) => at % 251)
        return (index) => {
          body[0] = index
          const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 5, lockingScript: p2pkh(0) }] })
          const lockingScript = inscriptionScript({ contentType: 'video/mp4', body })
          const outputs = [{ satoshis: 1, lockingScript }]
          const inputs = [{ transaction: coin, vout: 0 }]
          return submitting(beefOf(chain.spend({ inputs, outputs }), { with: [coin] }))
        }
      },
      allowance: { requests: 7, connections: 7 },
      statuses: [200, 413, 429, 503],
    },
    {
      name: 'mebibyte-submissions',
      title: 'unproven submissions of 1 MiB with signatures to check',
      prepare:
        ({ chain }) =>
        () => {
          const coin = bareTransaction({
            inputs: [chain.madeUpCoin()],
            outputs: [{ satoshis: 10, lockingScript: concatBytes(new Uint8Array(70).fill(0x61), ANYONE) }],
          })
          const lockingScript = inscriptionScript({ contentType: 'text/plain', body: new Uint8Array(MiB) })
          const outputs = [{ satoshis: 1, lockingScript }]
          const subject = bareTransaction({ inputs: [{ txid: coin.txid, vout: 0 }], outputs })
          return submitting(beefOf(subject, { proven: false, with: [coin] }))
        },
      allowance: { requests: 100, connections: 100 },
      statuses: [200, 400, 413, 429, 503],
    },
  ]
}

function lifeOf(chain: FakeChain, steps: number): FakeTransaction[] {
  const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 5, lockingScript: p2pkh(0) }] })
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8('a life') })
  const life = [coin]
  for (let step = 0; step <= steps; step++) {
    const outputs = [{ satoshis: 1, lockingScript: step === 0 ? lockingScript : p2pkh(step) }]
    life.push(chain.spend({ inputs: [{ transaction: pick(life, step), vout: 0 }], outputs }))
  }
  return life
}

function openCoin(chain: FakeChain, outputs = 1, height = 1): FakeTransaction {
  const output = { satoshis: 1000, lockingScript: OPEN_LOCK }
  return bareTransaction({
    ...{ inputs: [chain.madeUpCoin()], height: 100_000 + height },
    outputs: Array.from({ length: outputs }, () => output),
  })
}

function openSpend(coins: readonly { txid: string; vout: number }[], outputs: number): FakeTransaction {
  const unlockingScript = Uint8Array.of(0x51)
  return bareTransaction({
    inputs: coins.map((outpoint) => ({ outpoint, unlockingScript })),
    outputs: Array.from({ length: outputs }, () => ({ satoshis: 1, lockingScript: OPEN_LOCK })),
  })
}

/** Spends a coin for a note that nobody else makes. */
function openNote({ txid }: FakeTransaction, n: number): FakeTransaction {
  const lockingScript = inscriptionScript({
    lock: OPEN_LOCK,
    contentType: 'text/plain',
    body: utf8(`note ${n}`),
  })
  const inputs = [{ outpoint: { txid, vout: 0 }, unlockingScript: Uint8Array.of(0x51) }]
  return bareTransaction({ inputs, outputs: [{ satoshis: 1, lockingScript }] })
}

/** Submits a chain behind a coin, one transaction after the other, and the last one again and again. */
function growing(coin: FakeTransaction, depth: number): RequestOf {
  const members = [coin]
  while (members.length <= depth)
    members.push(openSpend([{ txid: pick(members, members.length - 1).txid, vout: 0 }], 1))
  return (index) => {
    const at = 1 + Math.min(index, depth - 1)
    const ancestors = members.slice(0, at)
    return submitting(
      beefOf(pick(members, at), { proven: false, with: ancestors, unproven: ancestors.slice(1) }),
    )
  }
}

/** A BEEF of one transaction whose merkle path lists a whole block: all of its transactions, and nothing above them. */
function wideBump({ raw, txid }: FakeTransaction, leaves: number): Uint8Array {
  const hashes = new Uint8Array(leaves * 38)
  for (let at = 0; at < leaves; at++) {
    const hash = at === 0 ? fromHex(txid).reverse() : new Uint8Array(32).fill(at % 251)
    if (at > 0) new DataView(hash.buffer).setUint32(0, at)
    hashes.set(concatBytes(Uint8Array.of(0xfe), littleEndian(at), Uint8Array.of(2), hash), at * 38)
  }
  const bump = [varint(800_000), Uint8Array.of(1), varint(leaves), hashes]
  return joinBytes([fromHex('0100beef01'), ...bump, varint(1), raw, Uint8Array.of(1, 0)])
}

function littleEndian(value: number): Uint8Array {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setUint32(0, value, true)
  return bytes
}
