import type { HeaderChain } from '../graph/header-chain.js'
import { headerRange, readHeaders } from '../index/headers.js'
import type { Reader } from './reader.js'

/** The chain of most work among the headers of the log. */
export function headersIn(reader: Reader): Pick<HeaderChain, 'range' | 'read'> {
  return {
    range: async () => reader.answer(headerRange),
    read: async (query) => reader.answer((sql) => readHeaders(sql, query)),
  }
}
