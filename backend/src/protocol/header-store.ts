/** The heights of the lowest and the highest header, both stored. */
export interface HeaderRange {
  from: number
  to: number
}

/**
 * The headers of one chain of blocks, consecutive (`block-header.ts`). They are verified before they
 * are written.
 */
export interface HeaderStore {
  /** Undefined if there is none. */
  range(): Promise<HeaderRange | undefined>
  /**
   * Consecutive headers from a height on, at most `count`; fewer if the chain ends before. Empty if that height has none.
   */
  read(query: { from: number; count: number }): Promise<Uint8Array>
  /**
   * Replaces all headers from a height on. That height is at most one above the chain.
   *
   * @param change.tip The highest header that the caller knows; undefined if it knows none.
   * @returns False if the highest header is another one: another process was first, and nothing is changed.
   */
  replaceFrom(change: { height: number; headers: Uint8Array; tip: Uint8Array | undefined }): Promise<boolean>
  /**
   * Adds headers below the lowest one.
   *
   * @param change.to The height of the last of them.
   * @returns False if the lowest header is not right above: nothing is changed then.
   */
  addBelow(change: { to: number; headers: Uint8Array }): Promise<boolean>
  /** Deletes all of them. */
  clear(): Promise<void>
}
