import { MerklePath } from '@bsv/sdk'
import fc from 'fast-check'
import { concatBytes, fromHex, joinBytes, reversed, toHex } from '../../../backend/src/protocol/bytes.js'
import { encodePush } from '../../../backend/src/protocol/script-walk.js'
import { readTransaction } from '../../../backend/src/protocol/transaction.js'
import { bytes, bytesOf, outpoint } from '../../../test/support/protocol/arbitraries.js'
import type { FakeTransaction } from '../../../test/support/protocol/fake-chain.js'
import { encodeTransaction, varint } from '../../../test/support/protocol/raw-transaction.js'
import type { Prey } from '../world.js'
import { HUGE_COUNTS } from './bytes.js'
import { lockingScripts, programs } from './scripts.js'

/** A made transaction, and the parents that it has to come with. */
export interface Made {
  raw: Uint8Array
  txid: string
  outputs: number
  parents: readonly FakeTransaction[]
}

function made(raw: Uint8Array, parents: readonly FakeTransaction[]): Made {
  const { txid, outputs } = readTransaction(raw)
  return { raw, txid, outputs: outputs.length, parents }
}

const satoshis = fc.oneof({ weight: 5, arbitrary: fc.constant(1) }, fc.constantFrom(0, 2, 1000, 2 ** 52))

/** Transactions with much content, which are believed because a block is said to hold them. */
export function craftedTransactions(prey: Prey): fc.Arbitrary<Made> {
  const spends = fc.tuple(
    fc.constantFrom(...prey.coins),
    fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, fc.nat({ max: 3 })),
  )
  return fc
    .record({
      spent: fc.array(spends, { maxLength: 3 }),
      strange: fc.array(outpoint, { maxLength: 2 }),
      outputs: fc.array(fc.record({ satoshis, lockingScript: lockingScripts(prey) }), {
        minLength: 1,
        maxLength: 4,
      }),
    })
    .map(({ spent, strange, outputs }) => {
      const coins = [...spent.map(([{ txid }, vout]) => ({ txid, vout })), ...strange]
      const inputs = coins.map((coin) => ({ outpoint: coin, unlockingScript: new Uint8Array() }))
      return made(encodeTransaction({ inputs, outputs }), [...new Set(spent.map(([coin]) => coin))])
    })
}

/** Two unproven transactions, of which one runs a script in the other. */
export function runningTransactions(prey: Prey): fc.Arbitrary<{ locked: Made; unlocking: Made }> {
  return fc
    .record({
      lock: programs,
      unlock: fc.oneof(programs, bytes(20).map(encodePush)),
      version: fc.constantFrom(1, 2),
      lockTime: fc.nat({ max: 0xffffffff }),
    })
    .map(({ lock, unlock, version, lockTime }) => {
      const input = { outpoint: { txid: prey.open.txid, vout: 2 }, unlockingScript: Uint8Array.of(0x51) }
      const locked = made(
        encodeTransaction({
          inputs: [input],
          outputs: [{ satoshis: 1, lockingScript: lock }],
          version,
          lockTime,
        }),
        [prey.open],
      )
      const next = { outpoint: { txid: locked.txid, vout: 0 }, unlockingScript: unlock }
      const outputs = [{ satoshis: 1, lockingScript: Uint8Array.of(0x51) }]
      return { locked, unlocking: made(encodeTransaction({ inputs: [next], outputs, version }), [prey.open]) }
    })
}

/** A merkle path of a transaction, in a block with this many levels of noise. */
export function pathOf(
  txid: string,
  { height, offset, levels }: { height: number; offset: number; levels: readonly string[] },
): Uint8Array {
  const own = { offset, hash: txid, txid: true }
  if (levels.length === 0) return Uint8Array.from(new MerklePath(height, [[own]]).toBinary())
  const path = levels.map((hash, level) => [{ offset: Math.floor(offset / 2 ** level) ^ 1, hash }])
  const first = path[0]?.[0]
  const leaves = first === undefined ? [own] : [own, first].sort((one, other) => one.offset - other.offset)
  return Uint8Array.from(new MerklePath(height, [leaves, ...path.slice(1)]).toBinary())
}

/** Consistent paths; nobody asks whether the block exists. */
export function goodPaths(txid: string): fc.Arbitrary<Uint8Array> {
  const hash = bytesOf(32).map(toHex)
  return fc
    .record({
      height: fc.integer({ min: 1, max: 900_000 }),
      offset: fc.nat({ max: 255 }),
      levels: fc.array(hash, { minLength: 8, maxLength: 12 }),
    })
    .map((block) => pathOf(txid, block))
}

const count = fc.oneof(
  { weight: 8, arbitrary: fc.nat({ max: 3 }).map(varint) },
  fc.constantFrom(...HUGE_COUNTS),
)

/** Merkle paths by their grammar (BRC-74), with numbers that may be wrong. */
function strangePaths(txids: readonly string[]): fc.Arbitrary<Uint8Array> {
  const hash = fc.oneof(
    fc.constantFrom(...txids).map((txid) => reversed(fromHex(txid))),
    bytesOf(32),
  )
  const leaf = fc
    .tuple(count, fc.oneof(fc.constantFrom(0, 1, 2, 3), fc.nat({ max: 255 })), hash)
    .map(([offset, flags, of]) =>
      (flags & 1) === 1
        ? concatBytes(offset, Uint8Array.of(flags))
        : concatBytes(offset, Uint8Array.of(flags), of),
    )
  const level = fc
    .array(leaf, { maxLength: 4 })
    .chain((leaves) =>
      fc
        .oneof({ weight: 8, arbitrary: fc.constant(varint(leaves.length)) }, count)
        .map((many) => joinBytes([many, ...leaves])),
    )
  return fc
    .tuple(
      fc.oneof(fc.constant(varint(800_000)), count),
      fc.array(level, { maxLength: 6 }),
      fc.oneof({ weight: 6, arbitrary: fc.constant(undefined) }, fc.constantFrom(0, 64, 65, 255)),
    )
    .map(([height, levels, said]) => joinBytes([height, Uint8Array.of(said ?? levels.length), ...levels]))
}

const V1 = fromHex('0100beef')
const V2 = fromHex('0200beef')
const ATOMIC = fromHex('01010101')

/** The form of a BEEF. */
export interface BeefForm {
  version: 1 | 2
  isAtomic: boolean
}

/** A BEEF of a subject, which is proven if it has a path, after its proven parents and other, unproven transactions. */
export function beefWith(
  subject: Made,
  path: Uint8Array | undefined,
  options: BeefForm & { unproven?: readonly Uint8Array[] },
): Uint8Array {
  const paths = subject.parents.map(({ txid, height }) => pathOf(txid, { height, offset: 0, levels: [] }))
  const proven = subject.parents.map(({ raw }, index) => ({ raw, index }))
  const others = (options.unproven ?? []).map((raw) => ({ raw, index: undefined }))
  const last = { raw: subject.raw, index: path && paths.length }
  if (path !== undefined) paths.push(path)
  const all = [...proven, ...others, last].map(({ raw, index }) => {
    const proof = index === undefined ? Uint8Array.of(0) : concatBytes(Uint8Array.of(1), varint(index))
    return options.version === 1 ? concatBytes(raw, proof) : concatBytes(proof, raw)
  })
  const beef = joinBytes([
    options.version === 1 ? V1 : V2,
    varint(paths.length),
    ...paths,
    varint(all.length),
    ...all,
  ])
  return options.isAtomic ? concatBytes(ATOMIC, reversed(fromHex(subject.txid)), beef) : beef
}

/** BEEFs by their grammar (BRC-62, 95, 96), with numbers that may be wrong. */
export function strangeBeefs(prey: Prey): fc.Arbitrary<Uint8Array> {
  const raws = prey.coins.map(({ raw }) => raw)
  const txids = prey.coins.map(({ txid }) => txid)
  const entry = fc
    .tuple(fc.constantFrom(0, 0, 1, 1, 2, 3, 255), count, fc.constantFrom(...raws), fc.constantFrom(...txids))
    .map(([format, index, raw, txid]) => ({ format, index, raw, txid }))
  return fc
    .record({
      prefix: fc.constantFrom(V1, V1, V2, V2, fromHex('0300beef'), fromHex('16a7beef'), new Uint8Array()),
      atomic: fc.oneof(
        { weight: 3, arbitrary: fc.constant(undefined) },
        fc.constantFrom(...txids),
        bytesOf(32).map(toHex),
      ),
      paths: fc.array(strangePaths(txids), { maxLength: 4 }),
      entries: fc.array(entry, { maxLength: 6 }),
      pathCount: fc.oneof({ weight: 8, arbitrary: fc.constant(undefined) }, count),
      entryCount: fc.oneof({ weight: 8, arbitrary: fc.constant(undefined) }, count),
    })
    .map(({ prefix, atomic, paths, entries, pathCount, entryCount }) => {
      const isV1 = prefix === V1
      const written = entries.map(({ format, index, raw, txid }) => {
        if (isV1)
          return concatBytes(raw, format === 0 ? Uint8Array.of(0) : concatBytes(Uint8Array.of(format), index))
        const head = concatBytes(Uint8Array.of(format), format === 1 ? index : new Uint8Array())
        return concatBytes(head, format === 2 ? reversed(fromHex(txid)) : raw)
      })
      return joinBytes([
        ...(atomic === undefined ? [] : [ATOMIC, reversed(fromHex(atomic))]),
        prefix,
        pathCount ?? varint(paths.length),
        ...paths,
        entryCount ?? varint(entries.length),
        ...written,
      ])
    })
}
