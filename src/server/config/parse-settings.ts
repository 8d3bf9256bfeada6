import { z } from 'zod'
import { ConfigError } from './config-error.js'

/** A setting that is a whole number, within bounds. */
export const wholeNumber = (least: number, most: number) => {
  const message = ({ input }: { input?: unknown }): string =>
    `must be a whole number from ${least} to ${most}, not ${String(input).slice(0, MAX_SHOWN)}`
  return z
    .string()
    .regex(/^\d{1,15}$/, { error: message })
    .transform(Number)
    .refine((value) => value >= least && value <= most, { error: message })
}

/** How many characters of a wrong value an error quotes. */
const MAX_SHOWN = 40

/**
 * Reads settings as a schema has them.
 *
 * @throws ConfigError naming the first that does not hold.
 */
export function parseSettings<Schema extends z.ZodType>(
  schema: Schema,
  set: Record<string, unknown>,
): z.output<Schema> {
  const parsed = schema.safeParse(set)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new ConfigError(`${issue?.path.join('.')}: ${issue?.message}`)
}
