import { joinBytes } from './bytes.js'
import { CodedError } from './coded-error.js'
import type { Steps } from './steps.js'

/** The delta is no plain VCDIFF, or does not fit the bytes that it is applied to. */
export class DeltaError extends CodedError {
  override readonly name = 'DeltaError'
  readonly code = 'BAD_DELTA'

  /** @param at The offset in the delta. */
  constructor(
    readonly at: number,
    problem: string,
  ) {
    super(`${problem}, at byte ${at} of the delta`, { data: { at } })
  }
}

/** The magic and version of a VCDIFF, and a header indicator without compressor, code table and application header (RFC 3284 4.1). */
const HEADER = [0xd6, 0xc3, 0xc4, 0x00, 0x00]

/** The indicator of a window that copies from earlier output; 1 copies from the source, 0 from nothing (RFC 3284 4.2). */
const VCD_TARGET = 2

/** Numbers are below this: no body is longer, and no sum of two is inexact. */
const MAX_NUMBER = 2 ** 31
/** Bytes of a number that can matter. */
const NUMBER_BYTES = 5

const NOTHING = 0
const ADD = 1
const RUN = 2
const COPY = 3

/** Address modes (RFC 3284 5.3): absolute, relative to here, relative to one of the last four, or a recent one with that remainder. */
const MODE_HERE = 1
const NEAR = 4
const SAME = 3
const FIRST_NEAR = 2
const FIRST_SAME = FIRST_NEAR + NEAR

/** The two instructions of each code (RFC 3284 5.6): type, size (0: it follows), and mode of the first, then of the second. */
const FIELDS = 6
const CODES = /* @__PURE__ */ codeTable()

function codeTable(): Uint8Array {
  const codes = new Uint8Array(256 * FIELDS)
  let at = 0
  const put = (...fields: number[]): void => {
    codes.set(fields, at)
    at += FIELDS
  }
  put(RUN)
  for (let size = 0; size <= 17; size++) put(ADD, size)
  for (let mode = 0; mode < FIRST_SAME + SAME; mode++)
    for (const size of [0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]) put(COPY, size, mode)
  for (let mode = 0; mode < FIRST_SAME; mode++)
    for (let added = 1; added <= 4; added++)
      for (let copied = 4; copied <= 6; copied++) put(ADD, added, 0, COPY, copied, mode)
  for (let mode = FIRST_SAME; mode < FIRST_SAME + SAME; mode++)
    for (let added = 1; added <= 4; added++) put(ADD, added, 0, COPY, 4, mode)
  for (let mode = 0; mode < FIRST_SAME + SAME; mode++) put(COPY, 4, mode, ADD, 1)
  return codes
}

/** The parts of a window, by their offsets in the delta. */
interface Window {
  /** The bytes that it copies from: a part of the source, or of earlier output. */
  segment: { of: 'source' | 'target'; from: number; length: number }
  /** The length of its target. */
  length: number
  data: number
  instructions: number
  addresses: number
  end: number
}

/** Encoders write windows of kilobytes to megabytes, and each takes some time whatever is in it. */
const MAX_WINDOWS = 10_000
/** Work between two steps, in bytes, well below a millisecond; an instruction counts as some more. */
const STEP = 256 * 1024
const INSTRUCTION = 16
/** Up to this many bytes are copied one by one, which is faster than a call that copies many. */
const FEW = 32

class DeltaReader {
  constructor(
    private readonly delta: Uint8Array,
    public at: number,
    private readonly end: number,
  ) {}

  get atEnd(): boolean {
    return this.at === this.end
  }

  byte(): number {
    if (this.at >= this.end) throw new DeltaError(this.at, 'unexpected end')
    return this.delta[this.at++] ?? 0
  }

  /** Skips bytes, and returns their offset. */
  skip(length: number): number {
    if (length > this.end - this.at) throw new DeltaError(this.at, 'unexpected end')
    this.at += length
    return this.at - length
  }

  /** Reads digits of 7 bits, the highest first, all but the last with the highest bit set (RFC 3284 2). */
  number(): number {
    const start = this.at
    let value = 0
    for (let digits = 0; digits < NUMBER_BYTES; digits++) {
      const digit = this.byte()
      value = value * 128 + (digit & 127)
      if (digit >= 128) continue
      if (value < MAX_NUMBER) return value
      break
    }
    throw new DeltaError(start, 'a number of 2^31 or more')
  }

  /** Reads a window (RFC 3284 4.2 and 4.3). @param sizes The lengths of the source and of earlier output. */
  window(sizes: { source: number; target: number }): Window {
    const start = this.at
    const indicator = this.byte()
    if (indicator > VCD_TARGET)
      throw new DeltaError(start, `the indicator of a window is ${indicator}, and has to be 0, 1 or 2`)
    const of = indicator === VCD_TARGET ? 'target' : 'source'
    const length = indicator === 0 ? 0 : this.number()
    const from = indicator === 0 ? 0 : this.number()
    if (from + length > sizes[of])
      throw new DeltaError(start, `a window copies from bytes up to ${from + length} of ${sizes[of]}`)
    const encoded = this.number()
    const end = this.at + encoded
    const target = this.number()
    if (this.byte() !== 0) throw new DeltaError(this.at - 1, 'a window with a secondary compressor')
    const [data, instructions, addresses] = [this.number(), this.number(), this.number()]
    if (this.at + data + instructions + addresses !== end)
      throw new DeltaError(start, 'the parts of a window are not as long as the window')
    const at = this.skip(end - this.at)
    return {
      segment: { of, from, length },
      length: target,
      ...{ data: at, instructions: at + data, addresses: at + data + instructions, end },
    }
  }
}

/**
 * The length of what a delta makes, from the headers of its windows alone.
 *
 * @param source The length of the source.
 * @throws DeltaError for anything but a VCDIFF with the plain header and at least one window.
 */
export function targetLength(delta: Uint8Array, source: number): number {
  const wrong = HEADER.findIndex((byte, at) => delta[at] !== byte)
  if (wrong >= 0) throw new DeltaError(wrong, 'not the header of a plain VCDIFF, d6 c3 c4 00 00')
  const reader = new DeltaReader(delta, HEADER.length, delta.length)
  if (reader.atEnd) throw new DeltaError(reader.at, 'the delta is empty')
  let target = 0
  for (let windows = 0; !reader.atEnd; windows++) {
    if (windows === MAX_WINDOWS) throw new DeltaError(reader.at, `more than ${MAX_WINDOWS} windows`)
    target += reader.window({ source, target }).length
  }
  if (target >= MAX_NUMBER) throw new DeltaError(reader.at, 'the target has 2^31 bytes or more')
  return target
}

/**
 * Applies a delta, in steps between which others may run. The work is linear in the delta and the target.
 *
 * @param length The length of the target, by {@link targetLength}, which the caller bounds.
 * @throws DeltaError
 */
export function* applyDelta(delta: Uint8Array, source: Uint8Array, length: number): Steps<Uint8Array> {
  const target = new Uint8Array(length)
  const windows = new DeltaReader(delta, HEADER.length, delta.length)
  const addresses = new AddressCache()
  let budget = STEP
  let to = 0
  while (!windows.atEnd) {
    const window = windows.window({ source: source.length, target: to })
    const { segment } = window
    const start = to
    const stop = to + window.length
    const data = new DeltaReader(delta, window.data, window.instructions)
    const codes = new DeltaReader(delta, window.instructions, window.addresses)
    addresses.open(new DeltaReader(delta, window.addresses, window.end))
    while (!codes.atEnd) {
      const place = codes.at
      const code = codes.byte() * FIELDS
      for (let at = code; at < code + FIELDS && CODES[at] !== NOTHING; at += FIELDS / 2) {
        const type = CODES[at]
        const size = CODES[at + 1] || codes.number()
        if (size > stop - to) throw new DeltaError(place, 'a window makes more bytes than it declares')
        // A copy may run on from the segment into the target of the window, as both have one range of addresses.
        let from: Uint8Array = delta
        let address = 0
        let left = size
        let following = 0
        if (type === ADD) address = data.skip(size)
        else if (type === RUN) {
          target[to] = data.byte()
          from = target
          address = to
          if (size > 0) to++
          left = Math.max(size - 1, 0)
        } else {
          address = addresses.next(CODES[at + 2] ?? 0, segment.length + to - start)
          if (address < segment.length) {
            from = segment.of === 'source' ? source : target
            left = Math.min(size, segment.length - address)
            address += segment.from
            following = size - left
          } else {
            from = target
            address += start - segment.length
          }
        }
        budget -= size + INSTRUCTION
        // Most copies are short, and made byte by byte, even if they overlap their target.
        if (left === size && size <= FEW) {
          for (; left > 0; left--) target[to++] = from[address++] ?? 0
        }
        while (left > 0) {
          // A copy may overlap its own target: then it repeats, and each time there is twice as much to copy.
          const period = from === target ? to - address : STEP
          const part = Math.min(left, period, STEP)
          if (part <= FEW)
            for (let each = 0; each < part; each++) target[to + each] = from[address + each] ?? 0
          else if (from === target) target.copyWithin(to, address, address + part)
          else target.set(from.subarray(address, address + part), to)
          to += part
          left -= part
          if (period >= STEP) address += part
          if (left >= STEP) yield
          if (left > 0 || following === 0) continue
          from = target
          address = start
          left = following
          following = 0
        }
        if (budget < 0) {
          yield
          budget = STEP
        }
      }
    }
    if (to !== stop)
      throw new DeltaError(window.end, `a window makes ${to - start} bytes instead of ${window.length}`)
    if (!data.atEnd) throw new DeltaError(data.at, 'data that no instruction uses')
    addresses.close()
  }
  return target
}

/** The addresses of a window (RFC 3284 5.3), and the caches by which later ones are encoded. */
class AddressCache {
  private reader = new DeltaReader(new Uint8Array(), 0, 0)
  private readonly near = new Uint32Array(NEAR)
  private readonly same = new Uint32Array(SAME * 256)
  private oldest = 0

  open(reader: DeltaReader): void {
    this.reader = reader
    this.near.fill(0)
    this.same.fill(0)
    this.oldest = 0
  }

  /** @param here Where the copy goes: it must come from before. */
  next(mode: number, here: number): number {
    const { reader, near, same } = this
    const place = reader.at
    let address: number
    if (mode >= FIRST_SAME) address = same[(mode - FIRST_SAME) * 256 + reader.byte()] ?? 0
    else if (mode >= FIRST_NEAR) address = (near[mode - FIRST_NEAR] ?? 0) + reader.number()
    else address = mode === MODE_HERE ? here - reader.number() : reader.number()
    if (address < 0 || address >= here)
      throw new DeltaError(place, `a copy from ${address}, where there are ${here} bytes`)
    near[this.oldest] = address
    this.oldest = (this.oldest + 1) % NEAR
    same[address % same.length] = address
    return address
  }

  close(): void {
    if (!this.reader.atEnd) throw new DeltaError(this.reader.at, 'addresses that no instruction uses')
  }
}

/** The source is indexed by blocks of this many bytes; shorter copies are not worth an instruction. */
const BLOCK = 16
/** The target of a window that {@link encodeDelta} writes: every decoder has memory for it. */
const WINDOW_BYTES = 1024 * 1024

/** A delta that makes a target of a source: copies of blocks, and everything else as it is. The time is linear in both. */
export function encodeDelta(source: Uint8Array, target: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [Uint8Array.from(HEADER)]
  const blocks = new Blocks(source)
  let start = 0
  do {
    const end = Math.min(start + WINDOW_BYTES, target.length)
    parts.push(encodeWindow(source, target.subarray(start, end), blocks))
    start = end
  } while (start < target.length)
  return joinBytes(parts)
}

function encodeWindow(source: Uint8Array, target: Uint8Array, blocks: Blocks): Uint8Array {
  const codes = new ByteWriter()
  const addresses = new ByteWriter()
  const added: Uint8Array[] = []
  let [done, previous] = [0, 0]
  const add = (to: number): void => {
    if (to === done) return
    const size = to - done
    // Code 1 is followed by its size; the codes after it have sizes 1 to 17.
    if (size <= 17) codes.byte(1 + size)
    else codes.byte(1).number(size)
    added.push(target.subarray(done, to))
    done = to
  }
  let hash = blocks.hashOf(target, 0)
  for (let at = 0; at + BLOCK <= target.length; ) {
    const found = blocks.find(hash, target, { at, likely: previous + at - done })
    if (found === undefined) {
      hash = blocks.next(hash, target, at)
      at++
      continue
    }
    let [from, first] = [found, at]
    while (from > 0 && first > done && source[from - 1] === target[first - 1]) {
      from--
      first--
    }
    let size = at - first + BLOCK
    while (
      from + size < source.length &&
      first + size < target.length &&
      source[from + size] === target[first + size]
    )
      size++
    add(first)
    // The address is absolute, or relative to here. Codes from 19 or 35: the first is followed by the size, the others have 4 to 18.
    const here = source.length + done
    const mode = from < here - from ? 0 : MODE_HERE
    addresses.number(mode === 0 ? from : here - from)
    if (size <= 18) codes.byte(19 + 16 * mode + size - 3)
    else codes.byte(19 + 16 * mode).number(size)
    done += size
    previous = from + size
    at = done
    hash = blocks.hashOf(target, at)
  }
  add(target.length)
  const data = joinBytes(added)
  const sizes = new ByteWriter().number(target.length).byte(0)
  for (const { length } of [data, codes, addresses]) sizes.number(length)
  const encoded = [sizes.bytes, data, codes.bytes, addresses.bytes]
  const head = new ByteWriter().byte(source.length === 0 ? 0 : 1)
  if (source.length > 0) head.number(source.length).number(0)
  head.number(encoded.reduce((sum, { length }) => sum + length, 0))
  return joinBytes([head.bytes, ...encoded])
}

class ByteWriter {
  private readonly written: number[] = []

  get length(): number {
    return this.written.length
  }

  get bytes(): Uint8Array {
    return Uint8Array.from(this.written)
  }

  byte(byte: number): this {
    this.written.push(byte)
    return this
  }

  number(value: number): this {
    const digits = [value & 127]
    for (let left = value >>> 7; left > 0; left >>>= 7) digits.push((left & 127) | 128)
    this.written.push(...digits.reverse())
    return this
  }
}

/** The places of blocks in the source, by a rolling hash. */
class Blocks {
  private readonly places: Uint32Array
  private readonly shift: number

  constructor(private readonly source: Uint8Array) {
    const bits = Math.max(8, Math.ceil(Math.log2(source.length / BLOCK + 1)) + 1)
    this.places = new Uint32Array(2 ** bits)
    this.shift = 32 - bits
    for (let at = 0; at + BLOCK <= source.length; at += BLOCK) {
      const slot = this.slotOf(this.hashOf(source, at))
      // Keeps the first of several: what follows it is likely to follow again.
      if (this.places[slot] === 0) this.places[slot] = at + 1
    }
  }

  hashOf(bytes: Uint8Array, at: number): number {
    let hash = 0
    for (let each = at; each < at + BLOCK; each++) hash = (Math.imul(hash, FACTOR) + (bytes[each] ?? 0)) | 0
    return hash
  }

  /** The hash of the block one byte further. */
  next(hash: number, bytes: Uint8Array, at: number): number {
    const without = hash - Math.imul(bytes[at] ?? 0, HIGHEST)
    return (Math.imul(without, FACTOR) + (bytes[at + BLOCK] ?? 0)) | 0
  }

  /** Where the source has a block of the target: at a likely place, or anywhere. */
  find(hash: number, target: Uint8Array, { at, likely }: { at: number; likely: number }): number | undefined {
    if (this.isAt(likely, target, at)) return likely
    const place = (this.places[this.slotOf(hash)] ?? 0) - 1
    return place >= 0 && this.isAt(place, target, at) ? place : undefined
  }

  private isAt(place: number, target: Uint8Array, at: number): boolean {
    const { source } = this
    if (place + BLOCK > source.length) return false
    for (let each = 0; each < BLOCK; each++) if (source[place + each] !== target[at + each]) return false
    return true
  }

  private slotOf(hash: number): number {
    return Math.imul(hash, 0x9e3779b1) >>> this.shift
  }
}

const FACTOR = 0x01000193
/** The factor of a block's first byte in its hash. */
const HIGHEST = Array.from({ length: BLOCK - 1 }).reduce<number>((power) => Math.imul(power, FACTOR), 1)
