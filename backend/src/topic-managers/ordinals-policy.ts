import { inscriptionOf } from '../graph/ordinals-records.js'
import { essenceOf } from '../protocol/media-type.js'
import type { TransactionView } from '../protocol/transaction.js'
import { outputOf } from '../protocol/transaction.js'

/**
 * What a host takes into its collection of ordinals. It judges each output by what the output itself holds, content or
 * MAP; one that holds neither, as in a pure transfer, is not judged.
 */
export interface OrdinalsPolicy {
  /** The longest body of content. */
  maxContentBytes?: number
  /** The content types that are taken, without parameters: `text/plain`, or `image/*` for every subtype. */
  contentTypes?: string[]
  /**
   * Whether to take an output that the rest lets through. It is asked more than once about the same output, and has to
   * answer the same. Content type and length (bytes) are absent where the output has MAP alone.
   */
  admit?: (output: PolicyOutput) => boolean
}

export interface PolicyOutput {
  transaction: TransactionView
  vout: number
  /** As inscribed: a stranger's text. */
  contentType?: string
  contentLength?: number
}

/** A policy that cannot be meant. */
export class PolicyError extends Error {
  readonly code = 'BAD_POLICY'
  override readonly name = 'PolicyError'
}

/** Why an output is not taken: a code for counting, a sentence for a person. */
export interface PolicyRefusal {
  code: 'CONTENT_TOO_LARGE' | 'CONTENT_TYPE_NOT_ALLOWED' | 'POLICY'
  message: string
}

/** Tells whether an output may be admitted: what stands against it, or undefined. */
export type PolicyCheck = (transaction: TransactionView, vout: number) => PolicyRefusal | undefined

/** `image/png` or `image/*`; a star is a legal letter of a type (RFC 9110 5.6.2), but means nothing else here. */
const PATTERN = /^[!#$%&'+.^_`|~\w-]+\/(?:\*|[!#$%&'+.^_`|~\w-]+)$/

/** Whether a text may stand in {@link OrdinalsPolicy.contentTypes}. */
export function isContentTypePattern(text: string): boolean {
  return PATTERN.test(text)
}

/**
 * Makes the check of a policy; the first of its rules that an output breaks is named.
 *
 * @throws PolicyError (`BAD_POLICY`) for a limit that is no whole number of bytes, or a type that is none.
 */
export function policyCheck(policy: OrdinalsPolicy): PolicyCheck {
  const { maxContentBytes, contentTypes, admit } = policy
  if (maxContentBytes !== undefined && !(Number.isSafeInteger(maxContentBytes) && maxContentBytes >= 0))
    throw new PolicyError(`maxContentBytes must be a whole number of bytes, not ${maxContentBytes}`)
  const wrong = contentTypes?.find((type) => !isContentTypePattern(type))
  if (wrong !== undefined)
    throw new PolicyError(`${JSON.stringify(wrong)} is not a content type such as text/plain or image/*`)
  const allowed = contentTypes && new Set(contentTypes.map((type) => type.toLowerCase()))

  return (transaction, vout) => {
    const output = outputOf(transaction, vout)
    const { content, map } = output ? inscriptionOf(output) : { content: undefined, map: [] }
    if (content === undefined && map.length === 0) return undefined
    if (content !== undefined) {
      const { length } = content.body
      if (maxContentBytes !== undefined && length > maxContentBytes) {
        const message = `output ${vout} has ${length} bytes of content; this host accepts at most ${maxContentBytes}`
        return { code: 'CONTENT_TOO_LARGE', message }
      }
      const essence = essenceOf(content.contentType)
      if (allowed && !allowed.has(essence) && !allowed.has(essence.replace(/\/.*/, '/*'))) {
        const message = `output ${vout} has content of type ${essence}, which this host does not accept`
        return { code: 'CONTENT_TYPE_NOT_ALLOWED', message }
      }
    }
    const asked: PolicyOutput = {
      transaction,
      vout,
      ...(content && { contentType: content.contentType, contentLength: content.body.length }),
    }
    // Only a plain yes: the promise of an answer, which the types forbid, would pass for one.
    if (admit === undefined || admit(asked) === true) return undefined
    return { code: 'POLICY', message: `output ${vout} does not match what this host collects` }
  }
}

/** The policy in a line for each rule, for the topic's documentation; empty where there is none. */
export function describePolicy({ maxContentBytes, contentTypes, admit }: OrdinalsPolicy): string {
  const rules = [
    maxContentBytes !== undefined && `- Content of at most ${maxContentBytes} bytes.`,
    contentTypes &&
      `- Content of these types: ${contentTypes.map((type) => `\`${type}\``).join(', ') || 'none'}.`,
    admit && '- A rule of its own for what it collects.',
  ].filter((rule) => typeof rule === 'string')
  return rules.length === 0 ? '' : `\nThis host accepts:\n\n${rules.join('\n')}\n`
}
