import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import { TimeSlice } from '../../../backend/src/graph/yield-to-event-loop.js'
import {
  bitsOf,
  hashNumber,
  headerAt,
  headerCount,
  previousOf,
  targetOf,
} from '../../../backend/src/protocol/block-header.js'
import { equalBytes, reversed, toHex } from '../../../backend/src/protocol/bytes.js'
import { HeaderRules, type TargetRule } from '../../../backend/src/protocol/header-rules.js'

export function hashOf(header: Uint8Array): Uint8Array {
  return nativeHash256(header)
}

/** Hex in display order. */
export function shownHash(header: Uint8Array): string {
  return toHex(reversed(hashOf(header)))
}

/** Whether its hash meets the target in its bits. */
export function hasProofOfWork(header: Uint8Array): boolean {
  const target = targetOf(bitsOf(header))
  return target !== undefined && hashNumber(hashOf(header)) <= target
}

/**
 * Checks that consecutive headers are linked.
 *
 * @param ends The hash of the header before the first, and that of the last, in internal order, as far as they are known.
 * @returns The index of the first header that does not refer to the one before it, or whose hash is not that of the last;
 * undefined if all are linked.
 */
export async function firstUnlinked(
  headers: Uint8Array,
  { before, last }: { before?: Uint8Array; last?: Uint8Array },
): Promise<number | undefined> {
  const slice = new TimeSlice()
  const count = headerCount(headers)
  let previous = before
  for (let index = 0; index < count; index++) {
    if (previous !== undefined && !equalBytes(previousOf(headers, index), previous)) return index
    previous = hashOf(headerAt(headers, index))
    await slice.yieldIfOver()
  }
  return last !== undefined && previous !== undefined && !equalBytes(previous, last) ? count - 1 : undefined
}

/** {@link HeaderRules} with the hash of this host, for many headers. */
export class HeaderVerifier extends HeaderRules {
  /** @param options As of {@link HeaderRules}; the clock is that of this host by default. */
  constructor(options: { before: Uint8Array; height: number; rule: TargetRule; now?: () => number }) {
    const { now = Date.now, ...rest } = options
    super({ ...rest, now, hash: hashOf })
  }

  /** @throws InvalidHeadersError for the first header that breaks a rule; those before it are verified. */
  async verify(headers: Uint8Array): Promise<void> {
    const slice = new TimeSlice()
    for (let index = 0; index < headerCount(headers); index++) {
      this.next(headerAt(headers, index))
      await slice.yieldIfOver()
    }
  }
}
