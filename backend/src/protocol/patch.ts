import { GeneralError } from './coded-error.js'
import { decodeOutpoint, encodeOutpoint, formatOutpoint, type Outpoint } from './outpoint.js'
import type { Steps } from './steps.js'
import { applyDelta, DeltaError, targetLength } from './vcdiff.js'

/** The content type of patches, matched exactly as those of directories and chunks are. */
export const PATCH_TYPE = 'ordfs/patch'

/** How many patches may be built on each other. */
export const MAX_PATCHES = 16

/** The most work of a chain of patches, in bytes that are read or made, for each byte of the longest body. */
export const WORK_A_BYTE = 4

/** The bytes are no patch, or the patches make no body that may be shown. */
export class PatchError extends GeneralError<'BAD_PATCH' | 'PATCH_TOO_LARGE'> {
  override readonly name = 'PatchError'
}

/** A patch is a version, the outpoint of its base, and a delta. */
const VERSION = 0
const DELTA_AT = 37
/** How much of a record {@link baseOf} needs. */
export const BASE_BYTES = DELTA_AT

/**
 * The output that a patch is built on.
 *
 * @param record All of it, or its first {@link BASE_BYTES}.
 * @throws PatchError
 */
export function baseOf(record: Uint8Array): Outpoint {
  if (record.length < DELTA_AT) throw bad('a patch is shorter than 37 bytes')
  if (record[0] !== VERSION) throw bad(`the version of a patch is ${record[0]}, and has to be 0`)
  return decodeOutpoint(record.subarray(1, DELTA_AT))
}

export function encodePatch({ base, delta }: { base: Outpoint; delta: Uint8Array }): Uint8Array {
  const record = new Uint8Array(DELTA_AT + delta.length)
  record[0] = VERSION
  record.set(encodeOutpoint(base), 1)
  record.set(delta, DELTA_AT)
  return record
}

/** A part of a chain of patches: the content at its root, or a patch. */
export interface PatchPart {
  outpoint: Outpoint
  /** In bytes. */
  length: number
  read: () => Steps<Uint8Array>
}

/** A part whose bytes are in memory. */
export function patchPart(outpoint: Outpoint, body: Uint8Array): PatchPart {
  // biome-ignore lint/correctness/useYield: there is nothing to wait for.
  function* read(): Steps<Uint8Array> {
    return body
  }
  return { outpoint, length: body.length, read }
}

/**
 * The body that patches make, in steps.
 *
 * @param chain The content at the root, the patch on it, the patch on that, and so on; each is read when it is needed.
 * @param maxBytes The longest body that any of them may make, in bytes.
 * @throws PatchError
 */
export function* patched(chain: readonly PatchPart[], maxBytes: number): Steps<Uint8Array> {
  const maxWork = WORK_A_BYTE * maxBytes
  let work = 0
  const take = (bytes: number): void => {
    work += bytes
    if (work > maxWork)
      throw new PatchError('PATCH_TOO_LARGE', `its patches take more than ${maxWork} bytes of work`)
  }
  for (const { length } of chain) take(length)
  let body: Uint8Array | undefined
  for (const { outpoint, read } of chain) {
    const bytes: Uint8Array = yield* read()
    body =
      body === undefined
        ? bytes
        : yield* applied(bytes.subarray(DELTA_AT), { body, outpoint, maxBytes, take })
  }
  return body ?? new Uint8Array()
}

function* applied(
  delta: Uint8Array,
  {
    body,
    outpoint,
    maxBytes,
    take,
  }: { body: Uint8Array; outpoint: Outpoint; maxBytes: number; take: (bytes: number) => void },
): Steps<Uint8Array> {
  const patch = `the patch ${formatOutpoint(outpoint)}`
  try {
    const length = targetLength(delta, body.length)
    if (length > maxBytes)
      throw new PatchError('PATCH_TOO_LARGE', `${patch} makes ${length} bytes, and ${maxBytes} are allowed`)
    take(length)
    return yield* applyDelta(delta, body, length)
  } catch (cause) {
    if (!(cause instanceof DeltaError)) throw cause
    throw bad(`${patch} cannot be applied: ${cause.message}`, cause)
  }
}

/**
 * The outputs of a chain of patches.
 *
 * @param last The requested output.
 * @param before The output that a patch is built on; undefined for content that is no patch.
 * @returns The root, the patch on it, and so on, up to the last.
 * @throws PatchError for more than {@link MAX_PATCHES} of them.
 */
export function patchChain<Output>(last: Output, before: (output: Output) => Output | undefined): Output[] {
  const chain = [last]
  for (let base = before(last); base !== undefined; base = before(base)) {
    checkPatches(chain.length)
    chain.push(base)
  }
  return chain.reverse()
}

/** @throws PatchError for more patches than may be built on each other. */
export function checkPatches(count: number): void {
  if (count > MAX_PATCHES) throw bad(`more than ${MAX_PATCHES} patches are built on each other`)
}

function bad(message: string, cause?: unknown): PatchError {
  return new PatchError('BAD_PATCH', message, { cause })
}
