import { Transaction } from '@bsv/sdk'
import type { Random } from '../../test/support/random.js'
import type { Answer, Question } from '../../test/support/server/test-server.js'
import { posted } from '../../test/support/server/test-server.js'

/** What an ordinal became in one transaction. */
export interface Step {
  txid: string
  /** Where the transaction is proven. */
  height?: number | undefined
  /** Content, by what it repeats and how long it is. */
  content?: { said: string; length: number }
  map: Record<string, string>
}

/** An ordinal as it is after so many steps; never changed, but followed by another. */
export type State = readonly Step[]

/** An ordinal, and all that it may be at this moment. */
export interface Ordinal {
  origin: string
  /** Whether its steps are the chunks of a stream. */
  isStream: boolean
  /** In order. One that the server has not answered for yet is behind {@link answered}. */
  states: State[]
  /** The last state that the server has answered for; -1 before the first. */
  answered: number
}

/** A question, and what is wrong with an answer to it in a state: undefined where nothing is. */
export interface View {
  path: string
  question?: Question
  wrong(answer: Answer, state: State): string | undefined
}

export function bodyOf({ content }: Step): Buffer {
  return content === undefined ? Buffer.alloc(0) : Buffer.alloc(content.length, content.said)
}

/** The step that content stands in at a step. */
function contentAt(state: State, at: number): Step | undefined {
  return state.slice(0, at + 1).findLast(({ content }) => content !== undefined)
}

export const outpointOf = ({ txid }: Step): string => `${txid}_0`

/** Something that can be asked of an ordinal; numbers choose. */
export function viewOf(ordinal: Ordinal, random: Random): View {
  const { origin, states } = ordinal
  const length = states[ordinal.answered]?.length ?? 1
  const views: ((origin: string, random: Random) => View)[] = [tip, metadata, lookup, provenance]
  if (ordinal.isStream) views.push(stream, stream)
  const past = random.below(length)
  views.push(() => step(origin, past))
  return (random.pick(views) ?? tip)(origin, random)
}

/** Where it is now. */
function tip(origin: string): View {
  return {
    path: `/content/${origin}:-1`,
    wrong: (answer, state) => wrongContent(answer, state, state.length - 1),
  }
}

function step(origin: string, at: number): View {
  return {
    path: `/content/${origin}:${at}`,
    wrong: (answer, state) => wrongContent(answer, state, at),
  }
}

function wrongContent({ status, headers, body }: Answer, state: State, at: number): string | undefined {
  const shown = contentAt(state, at)
  const here = state[at]
  // What was reorganised may have been longer.
  if (shown === undefined || here === undefined)
    return status === 404 ? undefined : `status ${status}: no such step`
  if (status !== 200) return `status ${status}`
  const said = { outpoint: headers['x-outpoint'], sequence: headers['x-ord-seq'] }
  if (said.outpoint !== outpointOf(here) || said.sequence !== String(at))
    return `step ${at} is ${outpointOf(here)}, and not ${said.sequence} at ${said.outpoint}`
  return body.equals(bodyOf(shown)) ? undefined : `another body at step ${at}`
}

function metadata(origin: string): View {
  return {
    path: `/svc/gateway/metadata/${origin}:-1`,
    wrong({ status, json }, state) {
      const last = state.at(-1)
      if (status !== 200 || last === undefined) return `status ${status}`
      const map = Object.assign({}, ...state.map((each) => each.map)) as Record<string, string>
      const found = json as Record<string, unknown>
      const expected: Record<string, unknown> = {
        origin,
        outpoint: outpointOf(last),
        sequence: state.length - 1,
        tip: true,
        spent: false,
        height: last.height,
      }
      for (const [name, value] of Object.entries(expected))
        if (found[name] !== value) return `${name}: ${found[name]}, and not ${value}`
      const shown = JSON.stringify(sorted(found.map as Record<string, string>))
      return shown === JSON.stringify(sorted(map)) ? undefined : `another map: ${shown}`
    },
  }
}

function sorted(map: Record<string, string>): [string, string][] {
  return Object.entries(map).sort(([one], [other]) => (one < other ? -1 : 1))
}

function lookup(origin: string): View {
  return {
    path: '/lookup',
    question: posted({ service: 'ls_ordinals', query: { outpoint: origin, seq: -1 } }),
    wrong({ status, json }, state) {
      const { outputs } = json as { outputs?: { beef: number[]; outputIndex: number }[] }
      const [output, ...more] = outputs ?? []
      if (status !== 200 || output === undefined || more.length > 0)
        return `status ${status} and ${outputs?.length} outputs`
      const txid = Transaction.fromBEEF(output.beef).id('hex')
      return txid === state.at(-1)?.txid
        ? undefined
        : `the tip is in ${state.at(-1)?.txid}, and not in ${txid}`
    },
  }
}

/** An Outpoint BEEF starts with the outpoint that it is of, that of the tip, after four bytes. */
function provenance(origin: string): View {
  return {
    path: `/svc/gateway/provenance/${origin}`,
    wrong({ status, body }, state) {
      if (status !== 200) return `status ${status}`
      const txid = Buffer.from(body.subarray(4, 36)).reverse().toString('hex')
      return txid === state.at(-1)?.txid ? undefined : `it is of ${txid}`
    },
  }
}

function stream(origin: string, random: Random): View {
  const from = random.below(40)
  const to = from + random.below(2000)
  const isPart = random.next() < 0.5
  return {
    path: `/svc/gateway/stream/${origin}`,
    ...(isPart && { question: { headers: { Range: `bytes=${from}-${to}` } } }),
    wrong({ status, body }, state) {
      const whole = Buffer.concat(state.map(bodyOf))
      const expected = isPart ? whole.subarray(from, to + 1) : whole
      if (status !== (isPart ? 206 : 200)) return `status ${status}`
      return body.equals(expected)
        ? undefined
        : `a stream of ${body.length} bytes, and not of ${expected.length}`
    },
  }
}
