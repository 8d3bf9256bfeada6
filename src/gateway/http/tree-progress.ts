import type { Response } from 'express'
import { z } from 'zod'
import type { CatchUpProgress, TreeProgress } from './as-of.js'
import { AnswerError } from './errors.js'
import { asOf } from './schemas.js'

/** A host that follows nothing: anything missing in its store does not exist for it. */
export const NOTHING_FOLLOWED: TreeProgress = {
  asOf: undefined,
  isCatchingUp: false,
  isIncomplete: false,
  progress: () => ({}),
}

/**
 * Something was not found, which means nothing until the host has caught up.
 *
 * @param found Fields of the body that are known nevertheless.
 */
export function notCaughtUp(
  progress: CatchUpProgress,
  found: Readonly<Record<string, unknown>> = {},
): AnswerError {
  const { height, chainHeight } = progress
  const reached = height === undefined ? '' : ` Names were found up to block ${height}`
  const of = chainHeight === undefined ? '' : `${reached === '' ? ' The chain is at' : ' of'} ${chainHeight}`
  return new AnswerError(
    'NOT_CAUGHT_UP',
    `this host has not followed the tree of names to its end yet, so it cannot say what is free or does not exist.${reached}${of}${reached + of === '' ? '' : '.'} Try again later, or ask another host`,
    { data: { ...found, progress } },
  )
}

/**
 * There is no such name, node, proof or block, as of a block.
 *
 * @throws AnswerError while the host catches up, unless the reason is that the name exists.
 */
export function noName(
  message: string,
  { progress, isTaken = false }: { progress: TreeProgress; isTaken?: boolean },
): AnswerError {
  if (!isTaken) requireCaughtUp(progress)
  const { asOf } = progress
  return new AnswerError(isTaken ? 'TAKEN' : 'NOT_FOUND', message, {
    ...(asOf && { data: { asOf } }),
    headers: Object.fromEntries(namesHeaders(progress)),
  })
}

/** @throws AnswerError while the host catches up. */
export function requireCaughtUp(progress: TreeProgress, found?: Readonly<Record<string, unknown>>): void {
  if (progress.isCatchingUp) throw notCaughtUp(progress.progress(), found)
}

/** The fields of every JSON object about names. */
export const NAMES_FIELDS = {
  asOf: asOf.optional(),
  complete: z
    .literal(false)
    .optional()
    .describe(
      'Present until the host has caught up with the tree for the first time: entries may be missing or outdated.',
    ),
}

/** The one of these fields that is put in the body before an answer is sent. */
export function incomplete({ isCatchingUp }: Pick<TreeProgress, 'isCatchingUp'>): { complete?: false } {
  return isCatchingUp ? { complete: false } : {}
}

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
