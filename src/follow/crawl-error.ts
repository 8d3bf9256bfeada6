import { CodedError } from '../../backend/src/protocol/coded-error.js'

/** Why a branch of the tree, or the whole crawl, cannot be followed. */
type CrawlErrorCode =
  /** The chain source does not know a transaction that it must know. */
  | 'NOT_KNOWN'
  /** It names a spender that does not spend. */
  | 'NO_SPEND'
  /** What is needed to verify a transaction is more than one submission may have. */
  | 'TOO_LARGE'
  /** It is in no block, as is enough of what was followed before. */
  | 'UNPROVEN'
  /** The node refused what the source gave. */
  | 'REFUSED'

/** A crawl that does not get on. The message is one line. */
export class CrawlError extends CodedError<CrawlErrorCode> {
  override readonly name = 'CrawlError'
}
