import { z } from 'zod'
import { PointerError, parseOutpoint } from '../protocol/outpoint.js'

/** An outpoint as text, read. */
export const outpointText = z.string().transform((text, context) => {
  try {
    return parseOutpoint(text)
  } catch (error) {
    if (!(error instanceof PointerError)) throw error
    context.addIssue({ code: 'custom', message: error.message })
    return z.NEVER
  }
})
