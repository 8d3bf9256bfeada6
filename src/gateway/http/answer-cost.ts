import type { Response } from 'express'

/** Takes it that an answer has so many transactions in it, where a host counts what its clients cost. */
type CountTransactions = (transactions: number) => void

/** Has answers counted by what is in them, beside the request that they answer. */
export function countTransactionsWith(response: Response, count: CountTransactions): void {
  response.locals.countTransactions = count
}

/** Tells whoever counts how many transactions were read for an answer. */
export function countTransactions(response: Response, transactions: number): void {
  const count: unknown = response.locals.countTransactions
  if (typeof count === 'function') (count as CountTransactions)(transactions)
}
