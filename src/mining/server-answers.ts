import * as z from 'zod/mini'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { type Outpoint, readOutpoint } from '../../backend/src/protocol/outpoint.js'
import { PROFILES } from '../../backend/src/protocol/profile.js'
import type { Transaction } from '../../backend/src/protocol/sdk-types.js'
import { type FetchedAnswer, fetchBounded, notCaughtUp, readJson } from '../client/bounded-fetch.js'
import { MiningError } from './mining-error.js'

// JSON answers of a server: all that a page needs before anything is mined.

/** The longest JSON answer that is read, in bytes: a record, an error or a receipt. */
const MAX_JSON_BYTES = 1024 * 1024

/** A server's answer; `body` is undefined if it is not JSON. */
export interface JsonAnswer {
  status: number
  body: unknown
}

interface Question {
  url: string
  /** Time for the whole answer, in milliseconds. */
  timeout: number
  init?: RequestInit
  /** Cancels the request. */
  signal?: AbortSignal | undefined
}

/**
 * Requests JSON of up to 1 MiB. Redirects are refused.
 *
 * @throws MiningError `NO_ANSWER`, `NOT_CAUGHT_UP`.
 */
export async function askJson(question: Question): Promise<JsonAnswer> {
  const answer = await askServer({ ...question, maxBytes: MAX_JSON_BYTES })
  return { status: answer.status, body: readJson(answer.body) }
}

/** @throws MiningError `NO_ANSWER`, `NOT_CAUGHT_UP`. */
export async function askServer(question: Question & { maxBytes: number }): Promise<FetchedAnswer> {
  const { url, timeout, maxBytes, init = {}, signal } = question
  try {
    const answer = await fetchBounded(url, init, { timeout, maxBytes, signal })
    const early = notCaughtUp(new URL(url).origin, answer)
    if (early === undefined) return answer
    throw new MiningError('NOT_CAUGHT_UP', early.message, { cause: early })
  } catch (cause) {
    if (cause instanceof MiningError) throw cause
    throw new MiningError('NO_ANSWER', messageOf(cause), { cause })
  }
}

/** A live node, as claimed by an index. */
export interface LiveNode {
  /** The prefix that the node stands for. */
  domain: string
  outpoint: Outpoint
}

/** Time for an answer, in milliseconds. */
export const ANSWER_TIMEOUT = 20_000

const node = z.object({ domain: z.string().check(z.maxLength(255)), outpoint: z.string() })
const refusal = z.object({ error: z.string(), code: z.string(), txid: z.optional(z.string()) })

/**
 * Asks a server for the live node of the longest mined prefix of a name; undefined if the name is taken.
 *
 * @param question.url The URL of the server, without a slash at the end.
 * @throws MiningError `NO_ANSWER`, `NOT_CAUGHT_UP`, `BAD_INDEX`.
 */
export async function askLiveNode(question: {
  url: string
  name: string
  /** Whether to count mints that the network is not known to have. */
  unseen?: boolean | undefined
  signal?: AbortSignal
}): Promise<LiveNode | undefined> {
  const { url, name, unseen = false, signal } = question
  const path = `${PROFILES.local.namesPrefixes[0]}/mine/${name}${unseen ? '?unseen=true' : ''}`
  const { status, body } = await askJson({ url: url + path, timeout: ANSWER_TIMEOUT, signal })
  const refused = refusalOf(body)
  if (status === 404 && refused?.code === 'TAKEN') return undefined
  const found = refused === undefined ? node.safeParse(body).data : undefined
  const outpoint = found && readOutpoint(found.outpoint)
  if (found === undefined || outpoint === undefined) throw unexpectedAnswer(url, { status, body })
  return { domain: found.domain, outpoint }
}

const steak = z.record(z.string(), z.object({ outputsToAdmit: z.array(z.number()) }))

/**
 * Submits a transaction.
 *
 * @returns The answer, and the outputs that each topic admits if the server accepts the transaction.
 * @throws MiningError `NO_ANSWER`, `NOT_CAUGHT_UP`.
 */
export async function submitBeef(
  options: Omit<Question, 'init'> & Submission,
): Promise<JsonAnswer & { admitted: Admitted | undefined }> {
  const { url, beef, topics, ...question } = options
  const init = submitRequest({ beef, topics })
  const answer = await askJson({ ...question, url: `${url}/submit`, init })
  return { ...answer, admitted: admittedBy(answer) }
}

export interface Submission {
  beef: Uint8Array
  topics: readonly string[]
  /** Headers in addition to those of every submission. */
  headers?: Record<string, string>
}

/** The request to `/submit`. */
export function submitRequest({ beef, topics, headers }: Submission) {
  const usual = { 'Content-Type': 'application/octet-stream', 'X-Topics': JSON.stringify(topics) }
  return { method: 'POST' as const, headers: { ...usual, ...headers }, body: Uint8Array.from(beef) }
}

/** The outputs that each topic admits. */
export type Admitted = Record<string, { outputsToAdmit: number[] } | undefined>

/** The outputs that an answer to a submission admits; undefined if the server does not accept it. */
export function admittedBy({ status, body }: JsonAnswer): Admitted | undefined {
  return status === 200 ? steak.safeParse(body).data : undefined
}

/** How many ordinals a transaction makes, and how many of these a topic left out. Change is never 1 satoshi. */
export function ordinalsIn(
  { outputs }: Transaction,
  { outputsToAdmit = [] }: Partial<NonNullable<Admitted[string]>> = {},
): { all: number; left: number } {
  const ordinals = [...outputs.keys()].filter((vout) => outputs[vout]?.satoshis === 1)
  const admitted = new Set(outputsToAdmit)
  return { all: ordinals.length, left: ordinals.filter((vout) => !admitted.has(vout)).length }
}

/** The error in a body; undefined if it is none. */
export function refusalOf(body: unknown): z.output<typeof refusal> | undefined {
  return refusal.safeParse(body).data
}

/** The error for an unexpected answer. */
export function unexpectedAnswer(url: string, { status, body }: JsonAnswer): MiningError {
  const refused = refusalOf(body)
  const reason = refused ? quote(`${refused.code}: ${refused.error}`) : 'which is not a minetree answer'
  // The server is too busy, or not ready: another attempt may succeed later.
  const code = status === 429 || status === 503 ? 'NO_ANSWER' : 'BAD_INDEX'
  return new MiningError(code, `${url} answered ${status}, ${reason}`)
}

/** At most 200 characters of a server's text. */
export function quote(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}
