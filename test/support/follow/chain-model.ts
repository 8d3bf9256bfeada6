import { Answers } from '../../histories/answers.js'
import type { Proof } from '../../histories/decision.js'
import type { History, HistoryTransaction } from '../../histories/history.js'
import { genuineOf } from '../../histories/model.js'
import type { ChainWorld } from './chain-world.js'

/** Which ordinals a service follows, beside nodes. */
export type FollowedOrdinals = 'names' | 'all' | 'none'

/**
 * What a service that follows the chain has to answer at rest. It knows what somebody told it, and what that leads to: the
 * mints of every node, the transfers of the ordinals that it follows, and what places every ordinal back to its origin. All
 * answers follow from that and from the chain as it is now.
 *
 * @param options.told The txids that the service has taken from clients, or shows to know without need.
 */
export function answersAtRest(
  world: ChainWorld,
  { told, follow }: { told: Iterable<string>; follow: FollowedOrdinals },
): Answers {
  const known = new Set([world.history.genesis.txid, ...told])
  for (;;) {
    const answers = answersOf(world, known)
    const size = known.size
    for (const txid of needed(world, { answers, known, follow })) known.add(txid)
    if (known.size === size) return answers
  }
}

function answersOf(world: ChainWorld, known: ReadonlySet<string>): Answers {
  const { history } = world
  const transactions = world.inOrder(known)
  const insertionOrder = new Map(transactions.map(({ txid }, at) => [txid, at]))
  const proofs = new Map(
    transactions.flatMap(({ txid }): [string, Proof][] => {
      const proof = world.record(txid)?.proof
      return proof === undefined ? [] : [[txid, proof]]
    }),
  )
  const genuine = genuineOf(history, insertionOrder)
  return new Answers(history, { insertionOrder, proofs, genuine, blocked: [] })
}

function* needed(
  world: ChainWorld,
  { answers, known, follow }: { answers: Answers; known: ReadonlySet<string>; follow: FollowedOrdinals },
): Generator<string> {
  const { history } = world
  for (const node of answers.nodes.keys()) yield* spendersOf(node, world)
  const placed = new Set<string>()
  for (const outpoint of answers.held) {
    const { run } = answers.runOf(outpoint)
    const isName = answers.origins.has(run[0] ?? '')
    const isOneSat = answers.said(outpoint).satoshis === 1
    if (isOneSat && (follow === 'all' || (follow === 'names' && isName))) yield* spendersOf(outpoint, world)
    for (const each of run) placed.add(each)
  }
  for (const transaction of world.inOrder(known)) {
    yield* placing(transaction, { history, answers, placed })
    if (!world.isMined(transaction.txid) && world.isKnown(transaction.txid))
      yield* world.ancestorsOf(transaction).map(({ txid }) => txid)
  }
}

function spendersOf(outpoint: string, world: ChainWorld): string[] {
  const spender = world.spenderOf(outpoint)
  return spender === undefined ? [] : [spender]
}

/**
 * What tells where the ordinals in a transaction came from, and where those that it spends went: the transactions of its
 * inputs, up to the one that decides (BRC-159). A name starts at its origin, whatever was there before.
 */
function placing(
  { spends, said, outpoint }: HistoryTransaction,
  { history, answers, placed }: { history: History; answers: Answers; placed: ReadonlySet<string> },
): string[] {
  const satoshisIn = (spent: string): number =>
    history.byTxid.get(spent.slice(0, 64))?.said[Number(spent.slice(65))]?.satoshis ?? Number.NaN
  /** The input with the satoshi that an output starts with. */
  const inputOf = (vout: number): number => {
    const start = said.slice(0, vout).reduce((sum, { satoshis }) => sum + satoshis, 0)
    let end = 0
    return spends.findIndex((spent) => {
      end += satoshisIn(spent)
      return !(end <= start)
    })
  }
  const oneSat = [...said.keys()].filter((vout) => said[vout]?.satoshis === 1)
  const deciding = oneSat
    .filter((vout) => placed.has(outpoint(vout)) && !answers.origins.has(outpoint(vout)))
    .map(inputOf)
  // Behind the last output that can receive one, an ordinal is burnt, whatever is before it.
  const carrying = spends.findLastIndex((spent) => satoshisIn(spent) === 1 && answers.held.has(spent))
  const lastInput = Math.max(...oneSat.map(inputOf), -1)
  const last = Math.max(Math.min(carrying, lastInput), ...deciding)
  const sources = spends.slice(0, last + 1).map((spent) => spent.slice(0, 64))
  return sources.filter((each) => history.byTxid.has(each))
}
