import { MiningError } from './mining-error.js'

/** What a server answered: `body` is undefined where it is not JSON, which is not what a minetree server answers. */
export interface JsonAnswer {
  status: number
  body: unknown
}

/**
 * Asks a server for JSON.
 *
 * @param asked.server What it is to whoever reads an error.
 * @param asked.patience How long the answer may take, in milliseconds.
 * @throws MiningError `NO_ANSWER`.
 */
export async function askJson(asked: {
  url: string
  server: string
  patience: number
  init?: RequestInit
}): Promise<JsonAnswer> {
  const { url, server, patience, init } = asked
  let answer: Response
  let text: string
  try {
    answer = await fetch(url, { ...init, signal: AbortSignal.timeout(patience) })
    text = await answer.text()
  } catch (cause) {
    throw new MiningError('NO_ANSWER', `${server} does not answer: ${reasonOf(cause)}`, { cause })
  }
  return { status: answer.status, body: parseJson(text) }
}

/** What a text means as JSON; undefined where it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Not JSON is told apart by the caller, who knows what was asked.
    return undefined
  }
}

/** What `fetch` knows of a failure stands in its cause. */
function reasonOf(error: unknown): string {
  const inner: unknown = error instanceof Error && error.cause !== undefined ? error.cause : error
  return inner instanceof Error ? inner.message || inner.name : String(inner)
}
