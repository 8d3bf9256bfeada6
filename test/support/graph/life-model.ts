import { ORIGIN, TIP } from '../../../backend/src/graph/graph-store.js'
import { formatOutpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import type { Life, Submitted } from './life.js'
import { saidAlong } from './said-outputs.js'

/** What is known of an ordinal at a step. */
export interface OrdinalStep {
  sequence: number
  outpoint: string
  origin: string
  content: string
  tip: boolean
  parent: string | undefined
  map: Record<string, string | string[]>
}

/** What is to be answered when these submissions have been admitted, worked out from the chain alone. */
export function model(life: Life, submitted: Submitted[]) {
  const held = new Set(
    submitted.flatMap(({ transaction, admitted }) =>
      admitted.filter(({ topic }) => topic === TOPICS.ordinals).map(({ vout }) => transaction.outpoint(vout)),
    ),
  )
  const genuine = new Set(
    submitted
      .map(({ transaction }) => transaction.outpoint(2))
      .filter((outpoint) => life.names.has(outpoint)),
  )
  const output = (outpoint: string) => {
    const { txid, vout } = parseOutpoint(outpoint)
    return life.known.get(txid)?.transaction.outputs[vout]
  }
  const hasContent = (outpoint: string): boolean => life.said.get(outpoint)?.content === true
  /** The coin that the satoshi in a 1-sat output was before, where that coin held nothing else. */
  const before = (outpoint: string): string | undefined => {
    const { txid, vout } = parseOutpoint(outpoint)
    const transaction = life.known.get(txid)?.transaction
    if (transaction === undefined) return undefined
    const place = transaction.outputs.slice(0, vout).reduce((sum, { satoshis }) => sum + satoshis, 0)
    const satoshis = transaction.inputs.flatMap((input) => {
      const value = output(formatOutpoint(input))?.satoshis ?? 0
      return Array.from({ length: value }, () => ({ coin: formatOutpoint(input), value }))
    })
    const satoshi = satoshis[place]
    return satoshi?.value === 1 ? satoshi.coin : undefined
  }
  /** The outputs from the first that is known, and whether nothing is missing before that. */
  const lineageOf = (outpoint: string): { run: string[]; whole: boolean } => {
    const run = [outpoint]
    for (let at = outpoint; ; ) {
      const previous = genuine.has(at) ? undefined : before(at)
      if (previous === undefined) return { run, whole: true }
      if (!held.has(previous)) return { run, whole: false }
      run.unshift(previous)
      at = previous
    }
  }
  const nextOf = (outpoint: string): string | undefined =>
    [...held].find((each) => output(each)?.satoshis === 1 && !genuine.has(each) && before(each) === outpoint)

  const wholeLife = (outpoint: string): { run: string[]; whole: boolean } => {
    const { run, whole } = lineageOf(outpoint)
    for (let next = nextOf(outpoint); next !== undefined; next = nextOf(next)) run.push(next)
    return { run, whole }
  }
  /** A parent counts if its ordinal is spent, by any of the outputs that it was in. */
  const counts = (outpoint: string, parent: string): boolean => {
    const inputs = life.known.get(parseOutpoint(outpoint).txid)?.transaction.inputs ?? []
    const spent = inputs.map(formatOutpoint)
    // An output that is not of one satoshi is a chain of one: what it received has ended there.
    const isOrdinal = (each: string): boolean =>
      held.has(each) && output(each)?.satoshis === 1 && wholeLife(each).run.includes(parent)
    return spent.includes(parent) || (held.has(parent) && spent.some(isOrdinal))
  }
  const saidAt = (outpoint: string) => {
    const { parent, ...said } = life.said.get(outpoint) ?? {}
    return { ...said, ...(parent !== undefined && counts(outpoint, parent) && { parent }) }
  }
  /** What comes of all that is said from an origin on. */
  const saidFrom = (run: string[]) => saidAlong(run.map(saidAt))

  const answer = (outpoint: string, sequence: number): OrdinalStep | undefined => {
    if (output(outpoint)?.satoshis !== 1) {
      const alone = hasContent(outpoint) && [0, TIP, ORIGIN].includes(sequence)
      const said = saidFrom([outpoint])
      return alone
        ? { sequence: 0, outpoint, origin: outpoint, content: outpoint, tip: true, ...said }
        : undefined
    }
    const { run, whole } = wholeLife(outpoint)
    const origin = run.findIndex(hasContent)
    if (!whole || origin === -1) return undefined
    const step = sequence === TIP ? run.length - 1 : sequence === ORIGIN ? origin : origin + sequence
    const [at, content] = [run[step], run.slice(0, step + 1).findLast(hasContent)]
    const first = run[origin]
    if (at === undefined || content === undefined || first === undefined) return undefined
    const said = saidFrom(run.slice(origin, step + 1))
    return {
      sequence: step - origin,
      outpoint: at,
      origin: first,
      content,
      tip: step === run.length - 1,
      ...said,
    }
  }
  const tipOf = (outpoint: string): string =>
    output(outpoint)?.satoshis === 1 ? (wholeLife(outpoint).run.at(-1) ?? outpoint) : outpoint
  /** Where every ordinal is now. */
  const tips = [...new Set([...held].map(tipOf))]
  return { held, answer, tips }
}
