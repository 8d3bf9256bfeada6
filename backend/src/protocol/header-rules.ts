import {
  bitsOf,
  compactOf,
  hashNumber,
  headerAt,
  headerCount,
  previousOf,
  targetFor,
  targetOf,
  timeOf,
  workOf,
} from './block-header.js'
import { equalBytes } from './bytes.js'
import { CodedError } from './coded-error.js'
import type { Hash256 } from './transaction.js'

/** Headers that break a rule of consensus: no honest node has them. */
export class InvalidHeadersError extends CodedError {
  override readonly name = 'InvalidHeadersError'
  readonly code = 'INVALID_HEADERS'
}

/**
 * How a chain finds the target of its next block: `main` by the work and the time of the last day, `test` likewise, except that
 * a block that is twenty minutes late may have the easiest target, and `fixed` never changes it (regression test networks).
 */
export type TargetRule = 'main' | 'test' | 'fixed'

/** The easiest target of the main and the test network. */
const EASIEST_BITS = 0x1d00ffff
const EASIEST_TARGET = /* @__PURE__ */ targetOf(EASIEST_BITS) as bigint

/** Seconds between blocks that the difficulty aims at, and how many blocks it looks at. */
const SPACING = 600
const DAY = 144
/** The median of three is taken at both ends of the day, and the header that is judged comes after them. */
const TARGET_CONTEXT = DAY + 3
/** The time of a block must be above the median of this many before it. */
const TIME_CONTEXT = 11
/** How far the time of a block may be ahead of the clock, in seconds. */
const MAX_AHEAD = 7200

/** How many headers before the first one the rules look at. */
export const CONTEXT = TARGET_CONTEXT

/** The rule of a chain, by the header of its checkpoint: no block of a main or test network has such an easy target. */
export function targetRuleOf(header: Uint8Array, network: 'main' | 'test'): TargetRule {
  return (targetOf(bitsOf(header)) ?? 0n) > EASIEST_TARGET ? 'fixed' : network
}

export function totalWork(headers: Uint8Array): bigint {
  let work = 0n
  for (let index = 0; index < headerCount(headers); index++) work += workCache.of(bitsOf(headers, index))
  return work
}

/** Neighbours often have the same bits, and the divisions are long. */
const workCache = {
  bits: EASIEST_BITS,
  work: /* @__PURE__ */ workOf(EASIEST_BITS),
  of(bits: number): bigint {
    if (bits !== this.bits) {
      this.work = workOf(bits)
      this.bits = bits
    }
    return this.work
  },
}

interface Known {
  time: number
  /** The work of the chain up to here, counted from any header on. */
  work: bigint
}

/**
 * The bits that the next header must have. The difficulty adjustment since November 2017 (bitcoin-sv, `src/pow.cpp`,
 * GetNextCashWorkRequired) takes the work of a day of blocks, in the time that they took.
 *
 * @param query.known The headers before it, oldest first; for `main` and `test` at least {@link CONTEXT}.
 * @param query.bits The bits of the header before.
 * @param query.time The time of the next header.
 */
export function nextBits(query: {
  known: readonly Known[]
  rule: TargetRule
  bits: number
  time: number
}): number {
  const { known, rule, bits, time } = query
  if (rule === 'fixed') return bits
  const end = known.length - 1
  if (rule === 'test' && time > (known[end]?.time ?? 0) + 2 * SPACING) return EASIEST_BITS
  const [last, first] = [medianOfThree(known, end), medianOfThree(known, end - DAY)]
  const took = Math.min(Math.max(last.time - first.time, (DAY / 2) * SPACING), 2 * DAY * SPACING)
  const target = targetFor(((last.work - first.work) * BigInt(SPACING)) / BigInt(took))
  return target > EASIEST_TARGET ? EASIEST_BITS : compactOf(target)
}

/** Of three headers, the one with the median time. With equal times, the order of comparisons decides, as in the node. */
function medianOfThree(known: readonly Known[], end: number): Known {
  let [one, two, three] = known.slice(end - 2, end + 1) as [Known, Known, Known]
  if (one.time > three.time) [one, three] = [three, one]
  if (one.time > two.time) [one, two] = [two, one]
  if (two.time > three.time) [two, three] = [three, two]
  return two
}

/**
 * Verifies headers one after another by the rules of consensus that headers alone show (docs/follow.md): linkage, proof of
 * work, the target that the difficulty adjustment asks for, and time.
 */
export class HeaderRules {
  /** The work of the headers that were verified. */
  work = 0n
  /** The height of the last verified header. */
  height: number
  /** Its hash, in internal order. */
  previous: Uint8Array
  /** The last headers, oldest first. */
  private readonly known: Known[] = []
  private readonly rule: TargetRule
  private readonly now: () => number
  private readonly hash: Hash256
  private bits: number

  /**
   * @param options.before The headers before the first one to verify, {@link CONTEXT} of them; fewer are enough for `fixed`.
   * @param options.height The height of the last of these.
   * @param options.now The clock, in milliseconds since 1970.
   */
  constructor(options: {
    before: Uint8Array
    height: number
    rule: TargetRule
    now: () => number
    hash: Hash256
  }) {
    const { before, height, rule, now, hash } = options
    const count = headerCount(before)
    if (count < (rule === 'fixed' ? 1 : TARGET_CONTEXT))
      throw new RangeError(`${count} headers are not enough to know the next target`)
    this.rule = rule
    this.now = now
    this.hash = hash
    this.height = height
    this.previous = hash(headerAt(before, count - 1))
    this.bits = bitsOf(before, count - 1)
    for (let index = 0; index < count; index++) this.push(timeOf(before, index), bitsOf(before, index))
  }

  /** Verifies the next header. @throws InvalidHeadersError if it breaks a rule. */
  next(header: Uint8Array): void {
    const height = this.height + 1
    const refuse = (reason: string): never => {
      throw new InvalidHeadersError(`the header at ${height} ${reason}`)
    }
    if (!equalBytes(previousOf(header), this.previous)) refuse('does not refer to the one before it')
    const [bits, time] = [bitsOf(header), timeOf(header)]
    const { known, rule } = this
    const expected = nextBits({ known, rule, bits: this.bits, time })
    if (bits !== expected)
      refuse(`has the target ${bits.toString(16)}, but the chain requires ${expected.toString(16)}`)
    const hash = this.hash(header)
    const target = targetOf(bits)
    if (target === undefined || hashNumber(hash) > target) refuse('has no proof of work')
    if (time <= this.medianTime()) refuse('is not after the median time of the eleven before it')
    if (time > this.now() / 1000 + MAX_AHEAD) refuse('is more than two hours ahead of the clock of this host')
    this.work += workCache.of(bits)
    this.height = height
    this.previous = hash
    this.bits = bits
    this.push(time, bits)
  }

  private medianTime(): number {
    const times = this.known.slice(-TIME_CONTEXT).map(({ time }) => time)
    times.sort((one, other) => one - other)
    return times[times.length >> 1] ?? 0
  }

  private push(time: number, bits: number): void {
    const { known } = this
    known.push({ time, work: (known.at(-1)?.work ?? 0n) + workCache.of(bits) })
    if (known.length > 2 * TARGET_CONTEXT) known.splice(0, TARGET_CONTEXT)
  }
}
