import { isDeepStrictEqual } from 'node:util'
import { AnswerError, readAnswers } from './answer.js'
import { exchange } from './exchange.js'
import type { Probe } from './world.js'

/** Sends a good request, and returns what is wrong with the answer; undefined for nothing. */
export async function wrongWith(
  probe: Probe,
  { url, patience }: { url: string; patience: number },
): Promise<string | undefined> {
  const { end, received } = await exchange(url, probe.request, { patience })
  if (end === 'hung' || end === 'refused') return `the connection ${end}`
  try {
    const [answer] = readAnswers(received, { isHead: () => false })
    if (answer === undefined) return 'there is no answer'
    const { status, headers, body } = answer
    if (status !== probe.status) return `status ${status}, and not ${probe.status}`
    for (const [name, value] of Object.entries(probe.headers ?? {})) {
      if (headers.get(name) !== value) return `${name}: ${headers.get(name)}, and not ${value}`
    }
    if (probe.body !== undefined && !body.equals(probe.body)) return 'another body'
    if (probe.json !== undefined && !isDeepStrictEqual(JSON.parse(body.toString('utf8')), probe.json))
      return `${body}, and not ${JSON.stringify(probe.json)}`
    return undefined
  } catch (error) {
    if (!(error instanceof AnswerError) && !(error instanceof SyntaxError)) throw error
    return error.message
  }
}
