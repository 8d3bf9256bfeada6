import type { Response } from 'express'
import { z } from 'zod'
import type { AsOf, CatchUpProgress, TreeProgress } from './as-of.js'
import { AnswerError, NotFoundError } from './errors.js'
import { asOf } from './schemas.js'

/** A host that follows nothing: what is not in its store does not exist for it. */
export const NOTHING_FOLLOWED: TreeProgress = {
  asOf: undefined,
  isCatchingUp: false,
  isIncomplete: false,
  progress: () => ({}),
}

/** When to ask again, in seconds: catching up takes minutes. */
export const RETRY = 30

/** What was asked for is not here, which means nothing until the host has caught up. */
export class NotCaughtUpError extends AnswerError {
  override readonly name = 'NotCaughtUpError'
  readonly code = 'NOT_CAUGHT_UP'
  override readonly headers = { 'Retry-After': String(RETRY) }

  /** @param found Fields of the body with what is known in spite of that. */
  constructor(progress: CatchUpProgress, found: Readonly<Record<string, unknown>> = {}) {
    const { height, chainHeight } = progress
    const reached = height === undefined ? '' : ` Names were found up to block ${height}`
    const of =
      chainHeight === undefined ? '' : `${reached === '' ? ' The chain is at' : ' of'} ${chainHeight}`
    super(
      `this host has not followed the tree of names to its end yet, so it cannot say what is free or does not exist.${reached}${of}${reached + of === '' ? '' : '.'} Try again later, or ask another host`,
      { data: { ...found, progress } },
    )
  }
}

/** There is no such name, node or proof, as of a block. */
export class NoNameError extends NotFoundError {
  override readonly headers: Record<string, string>

  /** @throws NotCaughtUpError while the host catches up, unless it is because the name exists. */
  constructor(message: string, { progress, isTaken = false }: { progress: TreeProgress; isTaken?: boolean }) {
    if (!isTaken) requireCaughtUp(progress)
    const { asOf } = progress
    super(message, isTaken ? 'TAKEN' : 'NOT_FOUND', asOf && { data: { asOf } })
    this.headers = Object.fromEntries(namesHeaders(progress))
  }
}

/** @throws NotCaughtUpError while the host catches up. */
export function requireCaughtUp(progress: TreeProgress, found?: Readonly<Record<string, unknown>>): void {
  if (progress.isCatchingUp) throw new NotCaughtUpError(progress.progress(), found)
}

/** The fields of every JSON object about names. */
export const NAMES_FIELDS = {
  asOf: asOf.optional(),
  complete: z
    .literal(false)
    .optional()
    .describe('Present until the host has followed the tree to its end once: there may be more, or newer.'),
}

/** Those fields, for an answer that is made for one request. */
export function namesFields({ asOf, isCatchingUp }: TreeProgress): {
  asOf?: AsOf
  complete?: false
} {
  return { ...incomplete({ isCatchingUp }), ...(asOf && { asOf }) }
}

/** The one of them that is in the body of an answer before it is sent. */
export function incomplete({ isCatchingUp }: Pick<TreeProgress, 'isCatchingUp'>): { complete?: false } {
  return isCatchingUp ? { complete: false } : {}
}

/** The headers of every answer about names. */
export function namesHeaders({
  asOf,
  isCatchingUp,
}: Pick<TreeProgress, 'asOf' | 'isCatchingUp'>): [name: string, value: string][] {
  return [
    ...(asOf === undefined ? [] : [['X-As-Of', JSON.stringify(asOf)] as [string, string]]),
    ...(isCatchingUp ? [['X-Complete', 'false'] as [string, string]] : []),
  ]
}

export function setNamesHeaders(response: Response, progress: Parameters<typeof namesHeaders>[0]): void {
  for (const [name, value] of namesHeaders(progress)) response.setHeader(name, value)
}
