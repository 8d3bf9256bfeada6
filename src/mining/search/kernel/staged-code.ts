import {
  branchIf,
  type Code,
  I32,
  I32X4,
  i32Const,
  i32Load,
  localGet,
  localSet,
  loop,
  v128Load,
  v128Store,
} from './wasm-code.js'

/**
 * A number of 32 bits, by the time when it is known:
 * - `always`: when the kernel is written, as a number;
 * - `prepare`: when the function `prepare` runs, as code for it;
 * - `scan`: in each iteration of the loop of the function `scan`, as code for four numbers at once.
 */
export type StagedValue =
  | { known: 'always'; bits: number }
  | { known: 'prepare'; code: Code }
  | { known: 'scan'; code: Code }

export function always(bits: number): StagedValue {
  return { known: 'always', bits: bits | 0 }
}

/** Operations whose operands may be combined in any order. */
type Joining = 'add' | 'and' | 'or' | 'xor'

const JOIN: Record<Joining, (a: number, b: number) => number> = {
  add: (a, b) => (a + b) | 0,
  and: (a, b) => a & b,
  or: (a, b) => a | b,
  xor: (a, b) => a ^ b,
}

const NEUTRAL: Record<Joining, number> = { add: 0, and: -1, or: 0, xor: 0 }

/** Bytes of four numbers. */
export const VECTOR_SIZE = 16

/**
 * Writes the functions `prepare` and `scan` together. Each operation goes to the earliest place where its operands are
 * known, so a formula is written once, and whatever does not depend on the nonce is computed before the loop.
 */
export class StagedCode {
  /** The code of `prepare`, and of one iteration of the loop in `scan`. */
  readonly statements: { prepare: Code[]; scan: Code[] } = { prepare: [], scan: [] }
  /** How many locals are in use, including parameters. */
  readonly locals: { prepare: number; scan: number }
  readonly #loopCounter: number
  readonly #vectors = new Map<Code, number>()
  #free: number

  /**
   * @param options.locals How many locals the functions already have.
   * @param options.loopCounter A local of `scan`, for one number, that {@link repeat} may use.
   * @param options.free The start of the memory that `prepare` may use to pass values to `scan`.
   */
  constructor(options: {
    locals: { prepare: number; scan: number }
    loopCounter: number
    free: number
  }) {
    this.locals = { ...options.locals }
    this.#loopCounter = options.loopCounter
    this.#free = options.free
  }

  add(...values: StagedValue[]): StagedValue {
    return this.#join('add', values)
  }

  and(...values: StagedValue[]): StagedValue {
    return this.#join('and', values)
  }

  xor(...values: StagedValue[]): StagedValue {
    return this.#join('xor', values)
  }

  /** Shifted right, with zeros. */
  shr(value: StagedValue, count: number): StagedValue {
    if (value.known === 'always') return always(value.bits >>> count)
    return { ...value, code: [value.code, i32Const(count), operations(value).shr] }
  }

  shl(value: StagedValue, count: number): StagedValue {
    if (value.known === 'always') return always(value.bits << count)
    return { ...value, code: [value.code, i32Const(count), operations(value).shl] }
  }

  /** Rotated right, by two shifts: vectors have no such instruction. */
  rotr(value: StagedValue, count: number): StagedValue {
    return this.#join('or', [this.shr(value, count), this.shl(value, 32 - count)])
  }

  /** The same value, computed here once, however often it is used. */
  keep(value: StagedValue): StagedValue {
    if (value.known === 'always') return value
    const local = this.locals[value.known]++
    this.statements[value.known].push(value.code, localSet(local))
    return { known: value.known, code: localGet(local) }
  }

  /** The number at an address when `prepare` runs. */
  given(address: number): StagedValue {
    return this.keep({ known: 'prepare', code: i32Load(address) })
  }

  /** Loads four numbers in the loop. In {@link repeat}, `address` is that of the first iteration. */
  load(address: number, options: { inRepeat?: boolean } = {}): StagedValue {
    return { known: 'scan', code: v128Load(address, options.inRepeat ? this.#loopCounter : undefined) }
  }

  /** Stores a value in memory, as four numbers, as early as it is known. `address` as in {@link load}. */
  store(address: number, value: StagedValue, options: { inRepeat?: boolean } = {}): void {
    if (options.inRepeat)
      this.statements.scan.push(v128Store(address, this.#inScan(value), this.#loopCounter))
    else if (value.known === 'scan') this.statements.scan.push(v128Store(address, value.code))
    else this.statements.prepare.push(v128Store(address, [oneNumber(value), I32X4.splat]))
  }

  /**
   * Writes `body` once, and runs it several times within one iteration of the loop in `scan`.
   *
   * @param repeat.stride Bytes by which the addresses of {@link load} and {@link store} advance with each run.
   * @param repeat.state The input of the first run; the output of each run is the input of the next.
   * @returns the output of the last run.
   */
  repeat(repeat: {
    times: number
    stride: number
    state: readonly StagedValue[]
    body: (state: readonly StagedValue[]) => readonly StagedValue[]
  }): readonly StagedValue[] {
    const locals = repeat.state.map(() => this.locals.scan++)
    // All are read before the first is set: the output may be a permutation of the input.
    const setAll = (values: readonly StagedValue[]): Code => [
      values.map((value) => this.#inScan(value)),
      locals.toReversed().map(localSet),
    ]
    const { scan } = this.statements
    scan.push(setAll(repeat.state), i32Const(0), localSet(this.#loopCounter))
    this.statements.scan = []
    const state = locals.map((local): StagedValue => ({ known: 'scan', code: localGet(local) }))
    const given = repeat.body(state)
    const counter = localGet(this.#loopCounter)
    scan.push(
      loop([
        this.statements.scan,
        setAll(given),
        [counter, i32Const(repeat.stride), I32.add, localSet(this.#loopCounter)],
        [counter, i32Const(repeat.stride * repeat.times), I32.isBelow, branchIf(0)],
      ]),
    )
    this.statements.scan = scan
    return state
  }

  /** A value as four numbers in the loop; one that is known earlier is passed through memory, once. */
  #inScan(value: StagedValue): Code {
    if (value.known === 'scan') return value.code
    const key = value.known === 'always' ? value.bits : value.code
    const known = this.#vectors.get(key)
    if (known !== undefined) return v128Load(known)
    const address = this.#free
    this.#free += VECTOR_SIZE
    this.#vectors.set(key, address)
    this.store(address, value)
    return v128Load(address)
  }

  /** Combines what is known earliest first, so that the loop has a single operand for everything known before it. */
  #join(operation: Joining, values: readonly StagedValue[]): StagedValue {
    const bits: number[] = []
    const prepared: Code[] = []
    const scanned: Code[] = []
    for (const value of values) {
      if (value.known === 'always') bits.push(value.bits)
      else (value.known === 'prepare' ? prepared : scanned).push(value.code)
    }
    const constant = bits.reduce(JOIN[operation], NEUTRAL[operation])
    if (constant !== NEUTRAL[operation] && prepared.length > 0) prepared.unshift(i32Const(constant))
    let early: StagedValue | undefined
    if (prepared.length > 0) early = { known: 'prepare', code: joined(prepared, I32[operation]) }
    else if (constant !== NEUTRAL[operation] || scanned.length === 0) early = always(constant)
    if (scanned.length === 0 && early !== undefined) return early
    if (early !== undefined) scanned.unshift(this.#inScan(early))
    return { known: 'scan', code: joined(scanned, I32X4[operation]) }
  }
}

function joined(parts: readonly Code[], operation: Code): Code {
  return parts.reduce((before, part) => [before, part, operation])
}

function operations(value: StagedValue): { shl: Code; shr: Code } {
  return value.known === 'prepare' ? I32 : I32X4
}

/** A value as one number in `prepare`. */
function oneNumber(value: Exclude<StagedValue, { known: 'scan' }>): Code {
  return value.known === 'always' ? i32Const(value.bits) : value.code
}
