import type { Sql } from '../facts/connection.js'
import { PROOF_ROOT } from '../facts/log.js'
import { type Block, blockText, type SpendRecord } from '../graph/records.js'
import { headerRange, heightOfBlock, readHeaders } from '../index/headers.js'
import { fromHex, reversed } from '../protocol/bytes.js'
import type { HeaderRange } from '../protocol/header-store.js'
import { blobOf, hexOf, type Reader } from './reader.js'

/** The best chain of block headers, which a store has if its host keeps its own. */
export class Chain {
  constructor(private readonly reader: Reader) {}

  /** The heights of its headers; undefined if there are none. */
  range(): HeaderRange | undefined {
    return this.reader.answer(headerRange)
  }

  /** Consecutive headers, as far as they are known; none if the first is not. */
  headers(query: { from: number; count: number }): Uint8Array {
    return this.reader.answer((sql) => readHeaders(sql, query))
  }

  /** @param hash Of a block, in display order. */
  heightOf(hash: string): number | undefined {
    return this.reader.answer((sql) => heightOfBlock(sql, reversed(fromHex(hash))))
  }
}

/** The blocks of proofs that count, and of proofs of pending transactions. */
export class Blocks {
  constructor(private readonly reader: Reader) {}

  /** From a height on, highest first. */
  from({ from }: { from: number }): Block[] {
    return this.reader.answer((sql) => blocksBetween(sql, from, Number.MAX_SAFE_INTEGER))
  }

  /** The height of the highest one; 0 if there is none. */
  lastHeight(): number {
    return Number(this.reader.answer((sql) => sql.get(LAST_HEIGHT))?.height ?? 0)
  }

  /** Blocks that prove conflicts of these spends: other spenders of the same coins that are mined, or have a mined descendant. */
  async ofConflicts(spends: SpendRecord[]): Promise<Block[]> {
    const heightsOf = (sql: Sql, { outpoint: { txid, vout }, spender }: SpendRecord): number[] =>
      sql.all(HEIGHTS_OF_CONFLICTS, blobOf(txid), vout, blobOf(spender)).map(({ height }) => Number(height))
    const heights = await this.reader.each(spends, heightsOf)
    return await this.reader.each([...new Set(heights)], (sql, height) => blocksBetween(sql, height, height))
  }
}

const LAST_HEIGHT = 'select height from proof where ok = 1 order by height desc limit 1'
/** Heights of mined spenders, and of proven pending ones. */
const HEIGHTS_OF_CONFLICTS = `select spender.mined as height from tx cross join spend on pid = tx.id
    cross join tx as spender on spender.id = sid
    where tx.txid = ?1 and vout = ?2 and spender.txid <> ?3 and spender.mined is not null
  union all select proof.height from log.pending_spend as spend join log.pending_proof as proof on proof.txid = spend.spender
    where spend.txid = ?1 and spend.vout = ?2 and spender <> ?3`

const BLOCKS = [
  `select distinct height, ${PROOF_ROOT} as root from proof cross join log.log as log on log.seq = proof.seq
    where height >= ? and height <= ? and ok = 1`,
  'select distinct height, root from log.pending_proof where height >= ? and height <= ?',
]

/** Highest first, then by root. */
function blocksBetween(sql: Sql, from: number, to: number): Block[] {
  const rows = BLOCKS.flatMap((statement) => sql.all(statement, from, to))
  const blocks = rows.map(({ height, root }): Block => ({ height, root: hexOf(root) }))
  const distinct = [...new Map(blocks.map((block) => [blockText(block), block])).values()]
  return distinct.sort((one, other) => other.height - one.height || (one.root < other.root ? -1 : 1))
}
