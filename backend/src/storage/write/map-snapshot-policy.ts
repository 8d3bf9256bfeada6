/**
 * Which outputs keep merged MAP: the ones by which the MAP since the last that does has grown as long as that was. So a
 * read takes about as many bytes as it answers with, however long the ordinal lives; and all that is kept stays within a
 * small multiple of what was inscribed, however long a stranger makes it. It follows from the lineage alone, in whatever
 * order it came.
 */

/** Below this much MAP, nothing merged is kept: nearly every ordinal has its MAP in one output or two. */
const LEAST_BYTES = 2048
/** What an output counts for beside the bytes of its MAP: reading it takes a look-up. */
const BYTES_AN_OUTPUT = 256

/** The MAP along a lineage since the last that is kept merged. */
export class MapSnapshotPolicy {
  private kept: number
  private since = 0
  private outputs = 0

  /**
   * @param options.kept How long the last merged MAP is, in bytes.
   * @param options.since The lengths of the MAP of each output behind it.
   */
  constructor({ kept, since }: { kept: number; since: number[] }) {
    this.kept = kept
    for (const length of since) this.add(length)
  }

  /** Whether the next output has to keep all MAP up to it. @param length Of its own MAP, in bytes. */
  isDue(length: number): boolean {
    this.add(length)
    // One output alone is its own merged MAP: kept once more, it would be no sooner read.
    const isAlone = this.kept === 0 && this.outputs === 1
    return !isAlone && this.since >= Math.max(this.kept, LEAST_BYTES)
  }

  /** Goes on from an output that keeps so many bytes. */
  keep(length: number): void {
    this.kept = length
    this.since = 0
    this.outputs = 0
  }

  private add(length: number): void {
    this.since += length + BYTES_AN_OUTPUT
    this.outputs++
  }
}
