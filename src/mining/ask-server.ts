import { type FetchedAnswer, fetchBounded } from '../client/bounded-fetch.js'
import { readJson } from '../client/json-answer.js'
import { MiningError } from './mining-error.js'

/** The longest JSON that a server answers, in bytes: a record, an error or a receipt. */
const MAX_JSON_BYTES = 1024 * 1024

/** What a server answered: `body` is undefined where it is not JSON. */
export interface JsonAnswer {
  status: number
  body: unknown
}

interface Question {
  url: string
  /** How long the answer may take to its last byte, in milliseconds. */
  timeout: number
  init?: RequestInit
  /** Gives the answer up before its time. */
  signal?: AbortSignal | undefined
}

/**
 * Asks a server for JSON of up to 1 MiB. Redirects are refused.
 *
 * @throws MiningError `NO_ANSWER`.
 */
export async function askJson(question: Question): Promise<JsonAnswer> {
  const { status, body } = await askServer({ ...question, maxBytes: MAX_JSON_BYTES })
  return { status, body: readJson(body) }
}

/** @throws MiningError `NO_ANSWER`. */
export async function askServer({
  url,
  timeout,
  maxBytes,
  init = {},
  signal,
}: Question & { maxBytes: number }): Promise<FetchedAnswer> {
  try {
    return await fetchBounded(url, init, { timeout, maxBytes, ...(signal && { signal }) })
  } catch (cause) {
    throw new MiningError('NO_ANSWER', cause instanceof Error ? cause.message : String(cause), { cause })
  }
}
