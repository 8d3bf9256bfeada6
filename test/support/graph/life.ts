import fc from 'fast-check'
import { MAP_MARKER } from '../../../backend/src/protocol/bitcom.js'
import { concatBytes, toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import NamesTopicManager from '../../../backend/src/topic-managers/NamesTopicManager.js'
import OrdinalsTopicManager from '../../../backend/src/topic-managers/OrdinalsTopicManager.js'
import {
  beefOf,
  bitcomTail,
  FakeChain,
  type FakeOutput,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../protocol/fake-chain.js'

type Holding = 'nothing' | 'content' | 'child' | 'set' | 'add' | 'remove'

/** Which key of the metadata an output speaks of, and who owns it. */
export const KEYS = [100, 101, 102]

/** The public key hash of an owner, in hex. */
export function ownerOf(key: number): string {
  return toHex(p2pkh(key).subarray(3, 23))
}

/** One thing that somebody does; numbers choose among what there is. */
export interface Deed {
  mint: boolean
  /** Coins to spend: held by the topic, or fresh ones of other values. */
  coins: ({ held: number } | { satoshis: number })[]
  outputs: { satoshis: number; holds: Holding; key: number }[]
}

export const deed: fc.Arbitrary<Deed> = fc.record({
  mint: fc.nat(3).map((chance) => chance === 0),
  coins: fc.array(
    fc.oneof(
      { weight: 4, arbitrary: fc.record({ held: fc.nat(30) }) },
      { weight: 1, arbitrary: fc.record({ satoshis: fc.constantFrom(0, 1, 2, 7) }) },
    ),
    { minLength: 1, maxLength: 4 },
  ),
  outputs: fc.array(
    fc.record({
      satoshis: fc.constantFrom(0, 1, 1, 1, 1, 2, 5),
      holds: fc.constantFrom<Holding>(
        'nothing',
        'nothing',
        'content',
        'child',
        'set',
        'set',
        'add',
        'remove',
      ),
      key: fc.constantFrom(...KEYS),
    }),
    { minLength: 1, maxLength: 4 },
  ),
})

/** What an output says, as the test knows it without reading a script. */
export interface Said {
  owner?: string
  content?: true
  /** What the envelope names. */
  parent?: string
  map?: { command: 'SET' | 'ADD' | 'REMOVE'; key: string; value: string }
}

/** So long that a few of them are more than a store wants to merge on every read. */
const LONG = '.'.repeat(700)
const PARENT = `${'ee'.repeat(32)}_1`

function outputOf(
  { satoshis, holds, key }: Deed['outputs'][number],
  { body, parents }: { body: string; parents: readonly string[] },
): { output: FakeOutput; said: Said } {
  const lock = p2pkh(key)
  const inscription = { contentType: 'text/plain', body: utf8(body) }
  const map = (command: 'SET' | 'ADD' | 'REMOVE') => {
    const said = { command, key: `key ${key}`, value: command === 'SET' ? body + LONG : body }
    const words = command === 'REMOVE' ? [said.key] : [said.key, said.value]
    const tail = bitcomTail([MAP_MARKER, command, ...words])
    return { lockingScript: concatBytes(lock, tail), said: { map: said } }
  }
  const made = (): { lockingScript: Uint8Array; said: Said } => {
    switch (holds) {
      case 'nothing':
        return { lockingScript: lock, said: {} }
      case 'content':
        return { lockingScript: inscriptionScript({ ...inscription, lock }), said: { content: true } }
      case 'child': {
        const parent = parents[(key * 7 + body.length) % parents.length] ?? PARENT
        const lockingScript = inscriptionScript({ ...inscription, lock, parent: parseOutpoint(parent) })
        return { lockingScript, said: { content: true, parent } }
      }
      default:
        return map(holds === 'set' ? 'SET' : holds === 'add' ? 'ADD' : 'REMOVE')
    }
  }
  const { lockingScript, said } = made()
  return { output: { satoshis, lockingScript }, said: { owner: ownerOf(key), ...said } }
}

/** A transaction as it is submitted, and what the topics admit of it. */
export interface Submitted {
  transaction: FakeTransaction
  beef: Uint8Array
  admitted: { topic: string; vout: number }[]
}

/** Submits what comes of the deeds, one after the other, with every parent in the BEEF. */
export async function live(deeds: Deed[]) {
  const chain = new FakeChain()
  const known = new Map<string, FakeTransaction>()
  const held = new Set<string>()
  const spent = new Set<string>()
  const names = new Set<string>()
  const said = new Map<string, Said>()
  const submitted: Submitted[] = []
  const managers = {
    [TOPICS.names]: new NamesTopicManager({ deployment: chain.deployment }),
    [TOPICS.ordinals]: new OrdinalsTopicManager({ seen: undefined }),
  }
  const submit = async (transaction: FakeTransaction): Promise<void> => {
    known.set(transaction.txid, transaction)
    const { inputs } = transaction.transaction
    const parents = [...new Set(inputs.map(({ txid }) => txid))].flatMap((txid) => known.get(txid) ?? [])
    const beef = beefOf(transaction, { with: parents })
    const admitted: Submitted['admitted'] = []
    for (const topic of [TOPICS.names, TOPICS.ordinals]) {
      const coins = inputs.flatMap(({ txid, vout }, input) =>
        held.has(`${topic} ${txid}_${vout}`) ? [input] : [],
      )
      const { outputsToAdmit } = await managers[topic].identifyAdmissibleOutputs(beef, coins)
      for (const vout of outputsToAdmit) admitted.push({ topic, vout })
    }
    for (const { topic, vout } of admitted) held.add(`${topic} ${transaction.outpoint(vout)}`)
    submitted.push({ transaction, beef, admitted })
  }
  await submit(chain.genesis)
  let name = ''
  for (const [index, { mint, coins, outputs }] of deeds.entries()) {
    const free = [...held]
      .filter((key) => key.startsWith(TOPICS.ordinals))
      .map((key) => key.slice(TOPICS.ordinals.length + 1))
      .filter((key) => !spent.has(key))
    const inputs = coins.flatMap((asked): Outpoint[] => {
      // Where the topic holds no more, the coin is a fresh one.
      const coin = 'held' in asked && free.length === 0 ? { satoshis: 7 } : asked
      if ('held' in coin) return free.splice(coin.held % free.length, 1).map(parseOutpoint)
      const fresh = chain.spend({
        inputs: [],
        outputs: [{ satoshis: coin.satoshis, lockingScript: p2pkh(0) }],
      })
      known.set(fresh.txid, fresh)
      return [{ txid: fresh.txid, vout: 0 }]
    })
    for (const input of inputs) spent.add(formatOutpoint(input))
    if (mint) {
      name += 'n'
      const minted = chain.mint(name, { funding: inputs })
      names.add(minted.outpoint(2))
      said.set(minted.outpoint(2), { content: true })
      // Only mints spend nodes, though an ordinal may have fallen into one.
      for (const vout of [0, 1]) spent.add(minted.outpoint(vout))
      await submit(minted)
    } else {
      const coinsOf = (outpoint: Outpoint): Outpoint[] => known.get(outpoint.txid)?.transaction.inputs ?? []
      const before = inputs.flatMap(coinsOf)
      // What the transaction spends, what that was before, something else, and what nobody knows.
      const parents = [...inputs, ...before, ...before.flatMap(coinsOf)].map(formatOutpoint)
      parents.push(submitted.at(-1)?.transaction.outpoint(0) ?? PARENT, PARENT)
      const made = outputs.map((output) => outputOf(output, { body: `body ${index}`, parents }))
      const spending = chain.spend({ inputs, outputs: made.map(({ output }) => output) })
      for (const [vout, each] of made.entries()) said.set(spending.outpoint(vout), each.said)
      await submit(spending)
    }
  }
  return { chain, known, names, said, submitted }
}

export type Life = Awaited<ReturnType<typeof live>>
