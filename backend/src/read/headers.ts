import { headerRange, readHeaders } from '../index/headers.js'
import type { HeaderStore } from '../protocol/header-store.js'
import type { Reader } from './reader.js'

/** The chain of most work among the headers of the log. */
export function headersIn(reader: Reader): Pick<HeaderStore, 'range' | 'read'> {
  return {
    range: async () => reader.answer(headerRange),
    read: async (query) => reader.answer((sql) => readHeaders(sql, query)),
  }
}
