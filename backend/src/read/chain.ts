import { headerRange, heightOfBlock, readHeaders } from '../index/headers.js'
import { fromHex, reversed } from '../protocol/bytes.js'
import type { HeaderRange } from '../protocol/header-store.js'
import type { Reader } from './reader.js'

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
