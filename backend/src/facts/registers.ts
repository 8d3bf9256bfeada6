import { isDeepStrictEqual } from 'node:util'
import type { BlockedSubject } from '../graph/blocklist.js'
import type { Sighting } from '../graph/conflict-resolution.js'
import { type Block, blockText } from '../graph/records.js'
import { joinBytes, readUtf8, utf8 } from '../protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import type { LocalLog } from './local-log.js'
import { FACT, type Fact, type FactKind, type NewFact, readUint32, uint32 } from './log.js'

/**
 * Registers: facts that replace each other. Each has a subject (text), a number, and a JSON value; for a subject, the highest number
 * counts.
 */

/** The decision about something that can be blocked. */
export interface BlockedValue {
  blocked: boolean
  reason: string
  /** Milliseconds since 1970. */
  since: number
}

/** Describes a body that the operator has removed. */
export interface PurgedValue {
  sha256: string
  contentType: string
  length: number
  /** Where it was in the raw transaction; null if it was a fact of its own. */
  position: number | null
}

/** The subjects of registers, each with the type of its values. */
export const register = {
  /** {@link BlockedValue} */
  block: ({ kind, value }: BlockedSubject): string => `block ${kind} ${value}`,
  /** {@link Sighting} */
  sighting: (txid: string): string => `sighting ${txid}`,
  /** Whether the chain has a block: `true` or `false`. */
  verdict: (block: Block): string => `verdict ${blockText(block)}`,
  /** {@link PurgedValue} */
  purged: (output: Outpoint): string => `purged ${formatOutpoint(output)}`,
  /** A text. */
  setting: (name: string): string => `setting ${name}`,
} as const

/** What a register of the kind `block` is about. */
export function blockedSubject(subject: string): BlockedSubject {
  const [, kind, value = ''] = /^block (\w+) (.*)$/s.exec(subject) ?? []
  return { kind: kind as BlockedSubject['kind'], value }
}

export type RegisterValue = BlockedValue | PurgedValue | Sighting | boolean | string

/** The tree, its rules (`pinned-tree.ts`), and what decides which proofs count: `headers`, `tracker` or `scripts-only`. */
export const TREE_SETTINGS = [
  'genesis',
  'DIFFICULTY',
  'NAME_MARKER',
  'NAME_TLD',
  'PROFILE',
  'tracker',
  'COVENANT_VERSION',
] as const

/** Settings that are facts, because derivation depends on them. All others are in `state`. */
export const SETTINGS: ReadonlySet<string> = new Set([
  ...TREE_SETTINGS,
  // `<height> <hash>` of a header that the chain contains; empty if there is no chain.
  'anchor',
  // The base of scores, in milliseconds since 1970.
  'base',
])

/** How far scores are raised above any given before, in milliseconds. */
export const SCORE_MARGIN = 10_000

/** @param n From 1. */
export function registerFact(subject: string, n: number, value: RegisterValue): NewFact {
  return {
    kind: FACT.register,
    key: numberedKey(subject, n),
    body: utf8(JSON.stringify(value)),
  }
}

export function readRegisterFact({ key, body }: Pick<Fact, 'key' | 'body'>): {
  subject: string
  n: number
  value: RegisterValue
} {
  return { ...readNumberedKey(key), value: JSON.parse(readUtf8(body)) as RegisterValue }
}

const NUMBER_BYTES = 4

/** The key of a row that replaces earlier ones of its subject. @param n From 1. */
export function numberedKey(subject: string, n: number): Uint8Array {
  return joinBytes([utf8(subject), uint32(n)])
}

export function readNumberedKey(key: Uint8Array): { subject: string; n: number } {
  const end = key.length - NUMBER_BYTES
  return { subject: readUtf8(key.subarray(0, end)), n: readUint32(key, end) }
}

/** Above all numbers. The highest byte of each is 0, which no text contains, so no subject falls into the range of another. */
const MOST = 2 ** 24 - 1

/** The fact of a subject with the highest number. */
export function lastOf(log: LocalLog, kind: FactKind, subject: string): Fact | undefined {
  return log.lastBetween(kind, numberedKey(subject, 0), numberedKey(subject, MOST))
}

/** The current number and value of a register, and since when; undefined if it was never written. */
export function latestOf(
  log: LocalLog,
  subject: string,
): { n: number; value: RegisterValue; at: number } | undefined {
  const fact = lastOf(log, FACT.register, subject)
  return fact && { ...readRegisterFact(fact), at: fact.at }
}

/** The next fact of a register; undefined if it has that value already. */
export function nextOf(log: LocalLog, subject: string, value: RegisterValue): NewFact | undefined {
  const latest = latestOf(log, subject)
  if (latest !== undefined && isDeepStrictEqual(latest.value, value)) return undefined
  return registerFact(subject, (latest?.n ?? 0) + 1, value)
}

/** The fact that pins a setting; undefined if its value is not the expected one, or the same already. See `Settings.set`. */
export function pinOf(
  log: LocalLog,
  { name, value, from }: { name: string; value: string; from: string | undefined },
): NewFact | undefined {
  const subject = register.setting(name)
  return latestOf(log, subject)?.value === from ? nextOf(log, subject, value) : undefined
}

/** Whether the operator has removed a body of this transaction, so that its bytes no longer hash to its txid. */
export function isPurged(log: LocalLog, txid: Uint8Array): boolean {
  return hasRegister(log, `purged ${Buffer.from(txid).toString('hex')}_`)
}

/** Whether the operator has removed anything. */
export function hasPurged(log: LocalLog): boolean {
  return hasRegister(log, 'purged ')
}

/** Describes the body of an output that the operator has removed; undefined for any other. */
export function purgedAt(log: LocalLog, output: Outpoint): PurgedValue | undefined {
  return latestOf(log, register.purged(output))?.value as PurgedValue | undefined
}

function hasRegister(log: LocalLog, prefix: string): boolean {
  return log.lastBetween(FACT.register, utf8(prefix), utf8(`${prefix}~`)) !== undefined
}
