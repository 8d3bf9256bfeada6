/** A block that the chain must have. */
export interface HeaderCheckpoint {
  height: number
  /** Hex in display order. */
  hash: string
  /** The work of the chain up to it, itself included. */
  work: bigint
  /** The least work of a chain above the checkpoint. */
  minimumWork: bigint
}

/**
 * The checkpoints of both networks. Source: the table of bulk header files that Chaintracks verifies downloads by
 * (bsv-blockchain/ts-stack at c3fe101c, `packages/wallet/wallet-toolbox/src/services/chaintracker/chaintracks/util/
 * validBulkHeaderFilesByFileHash.ts`): `lastHash` and `lastChainWork` of the last file of 100,000 headers, and as minimum
 * the `lastChainWork` of the file after it. The 16,818 mainnet headers from 900,000 on that bsv-blockchain/go-chaintracks
 * ships (`data/headers/mainNet_9.headers` at 5b22f7c) follow this hash, by all rules that are checked here.
 */
export const HEADER_CHECKPOINTS: Record<'main' | 'test', HeaderCheckpoint> = {
  main: {
    height: 899_999,
    hash: '00000000000000000e7dcc27c06ee353bd37260b2e7e664314c204f0324a5087',
    work: 0x1664db1f2d50327928007e0n,
    // The chain at 942,760.
    minimumWork: 0x16bf64e6fb83417f3b94c86n,
  },
  test: {
    height: 1_699_999,
    hash: '000000000001561e0532f48401f822f5c0d8797e364b1d612a317eca6983ca36',
    work: 0x15814b9c82dabd4ea74n,
    // The chain at 1,728,129.
    minimumWork: 0x1581bdf712d6fabd4dan,
  },
}
