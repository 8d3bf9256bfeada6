/** Where bodies, raw transactions and MAP stand, in pieces of `CHUNK_BYTES`. */
export interface BlobChunks {
  /** One of them, counted from 0; undefined where there is none. `owner` is 32 bytes: the body's hash, or what stands for it. */
  piece(owner: Buffer, position: number): Promise<Uint8Array | undefined>
}
