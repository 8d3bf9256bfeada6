/** The writes of this host. Each is whole in itself, and its order is that of the writer of the store. */
export class Writes {
  /** @throws NotReadyError while the index is incomplete: what is decided by half of one is wrong. */
  assertIndexComplete: () => void = () => {}
  /** Called after each write. */
  onWritten: () => void = () => {}

  async run<Result>(write: () => Promise<Result>): Promise<Result> {
    try {
      this.assertIndexComplete()
      return await write()
    } finally {
      this.onWritten()
    }
  }
}
