/**
 * The WebAssembly instructions that the kernel uses, as bytes (WebAssembly core specification, 5.4), in nested lists:
 * {@link bytesOf} flattens them. Operands come first: `[a, b, I32.add]` is the sum of the results of `a` and `b`.
 */
export type Code = number | readonly Code[]

function bytesOf(code: Code): number[] {
  return typeof code === 'number' ? [code] : code.flatMap(bytesOf)
}

/** Operations on one number of 32 bits. */
export const I32 = {
  isZero: 0x45,
  isBelow: 0x49,
  add: 0x6a,
} satisfies Record<string, Code>

/** Vector instructions share their first byte, followed by a number in LEB128. */
const VECTOR = 0xfd
const vector = (instruction: number): Code => [VECTOR, unsigned(instruction)]

/** Operations on four numbers of 32 bits at once, independently. */
export const I32X4 = {
  /** One number in all four lanes. */
  splat: vector(0x11),
  and: vector(0x4e),
  or: vector(0x50),
  xor: vector(0x51),
  /** A single number: 1 if none of the four is 0, otherwise 0. */
  allTrue: vector(0xa3),
  shl: vector(0xab),
  shr: vector(0xad),
  add: vector(0xae),
} satisfies Record<string, Code>

export const i32Const = (value: number): Code => [0x41, signed(value)]
export const localGet = (local: number): Code => [0x20, unsigned(local)]
export const localSet = (local: number): Code => [0x21, unsigned(local)]

/** Runs `body`; a branch to it leaves it. */
export const block = (body: Code): Code => [0x02, NO_RESULT, body, END]
/** Runs `body`; a branch to it restarts it. */
export const loop = (body: Code): Code => [0x03, NO_RESULT, body, END]
/** Branches to a block or loop, counted from the innermost, if the number on the stack is not 0. */
export const branchIf = (depth: number): Code => [0x0d, unsigned(depth)]
const END = 0x0b
const NO_RESULT = 0x40

/** The alignment of loads and stores, as a power of two. */
const ALIGNED_TO_16 = 4

/** Loads four numbers from memory. If a local is given, it is added to the address. */
export function v128Load(address: number, behind?: number): Code {
  return [base(behind), vector(0x00), ALIGNED_TO_16, unsigned(address)]
}

/** Stores the four numbers of `value` in memory; `address` as in {@link v128Load}. */
export function v128Store(address: number, value: Code, behind?: number): Code {
  return [base(behind), value, vector(0x0b), ALIGNED_TO_16, unsigned(address)]
}

const base = (local: number | undefined): Code => (local === undefined ? i32Const(0) : localGet(local))

/** Four constant numbers. */
export function v128Const(...lanes: [number, number, number, number]): Code {
  return [vector(0x0c), ...new Uint8Array(Uint32Array.from(lanes).buffer)]
}

/** LEB128: seven bits per byte, the lowest first; all bytes but the last have the high bit set. */
function unsigned(value: number): Code {
  return value < 0x80 ? value : [(value & 0x7f) | 0x80, unsigned(value >>> 7)]
}

/** Signed LEB128, in two's complement: bit 6 of the last byte is the sign. */
function signed(value: number): Code {
  const [low, rest] = [value & 0x7f, value >> 7]
  const sign = (low & 0x40) === 0 ? 0 : -1
  return rest === sign ? low : [low | 0x80, signed(rest)]
}

/** An exported function from numbers of 32 bits to one. */
interface WasmFunction {
  name: string
  parameters: number
  /** How many locals follow the parameters: first single numbers, then vectors of four. */
  locals: { i32: number; v128: number }
  body: Code
}

const TYPE = { i32: 0x7f, v128: 0x7b, function: 0x60 } as const
const EXPORT = { function: 0, memory: 2 } as const
const MAGIC_AND_VERSION: Code = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0]

/**
 * A module without imports: a function, and a memory of 64 KiB exported as `memory` (WebAssembly core specification, 5.5).
 */
export function encodeModule({ name, parameters, locals, body }: WasmFunction): Uint8Array<ArrayBuffer> {
  const numbers = (count: number): Code => list(Array.from({ length: count }, () => TYPE.i32))
  const declared = list([
    [unsigned(locals.i32), TYPE.i32],
    [unsigned(locals.v128), TYPE.v128],
  ])
  return Uint8Array.from(
    bytesOf([
      MAGIC_AND_VERSION,
      section(1, list([[TYPE.function, numbers(parameters), numbers(1)]])),
      section(3, list([unsigned(0)])),
      // One memory, of one page initially, without a maximum.
      section(5, list([[0, 1]])),
      section(
        7,
        list([
          [text('memory'), EXPORT.memory, 0],
          [text(name), EXPORT.function, unsigned(0)],
        ]),
      ),
      section(10, list([sized([declared, body, END])])),
    ]),
  )
}

const section = (id: number, content: Code): Code => [id, sized(content)]
const list = (items: readonly Code[]): Code => [unsigned(items.length), items]
const text = (name: string): Code => sized([...new TextEncoder().encode(name)])

function sized(content: Code): Code {
  const bytes = bytesOf(content)
  return [unsigned(bytes.length), bytes]
}
