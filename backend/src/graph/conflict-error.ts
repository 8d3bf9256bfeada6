/** A transaction that does not count, as another spends what it spends, or what it is built on spends. Both are txids. */
export class LostConflictError extends Error {
  override readonly name = 'LostConflictError'

  constructor(
    readonly txid: string,
    readonly winner: string,
  ) {
    super(
      `${txid} conflicts with ${winner}, which counts: they, or transactions they build on, spend the same output`,
    )
  }
}
