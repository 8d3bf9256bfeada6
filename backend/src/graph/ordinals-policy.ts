import { CodedError } from '../protocol/coded-error.js'
import { essenceOf } from '../protocol/media-type.js'
import { outputOf, type TransactionView } from '../protocol/transaction.js'
import { inscriptionOf } from './transaction-records.js'

/**
 * What a host admits into its collection of ordinals. Each output is judged by its own content or MAP; one that has neither,
 * as in a pure transfer, is not judged.
 */
export interface OrdinalsPolicy {
  /** The longest body of content, in bytes. */
  maxContentBytes?: number
  /** The content types that are admitted, without parameters: `text/plain`, or `image/*` for every subtype. */
  contentTypes?: string[]
  /**
   * Whether to admit an output that the other rules let through. It may be called several times for one output, and must be
   * deterministic. Content type and length (bytes) are absent if the output has only MAP.
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

export class PolicyError extends CodedError {
  override readonly name = 'PolicyError'
  readonly code = 'BAD_POLICY'
}

/** Why an output is not admitted: a code to count, a sentence for a person. */
export interface PolicyRefusal {
  code: 'CONTENT_TOO_LARGE' | 'CONTENT_TYPE_NOT_ALLOWED' | 'POLICY'
  message: string
}

/** Says why an output may not be admitted; undefined if it may. */
export type PolicyCheck = (transaction: TransactionView, vout: number) => PolicyRefusal | undefined

/** `image/png` or `image/*`. RFC 9110 5.6.2 allows a star anywhere in a type; here it is only a wildcard. */
const PATTERN = /^[!#$%&'+.^_`|~\w-]+\/(?:\*|[!#$%&'+.^_`|~\w-]+)$/

/** Whether a text is valid in {@link OrdinalsPolicy.contentTypes}. */
export function isContentTypePattern(text: string): boolean {
  return PATTERN.test(text)
}

/**
 * Creates the check of a policy, which names the first rule that an output breaks.
 *
 * @throws PolicyError for a limit that is no whole number of bytes, or an invalid content type.
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
    // Strictly: a promise, which the types forbid, would be truthy.
    if (admit === undefined || admit(asked) === true) return undefined
    return { code: 'POLICY', message: `output ${vout} does not match what this host collects` }
  }
}

/** The policy for the topic's documentation, a line for each rule; empty if there is none. */
export function describePolicy({ maxContentBytes, contentTypes, admit }: OrdinalsPolicy): string {
  const rules = [
    maxContentBytes !== undefined && `- Content of at most ${maxContentBytes} bytes.`,
    contentTypes &&
      `- Content of these types: ${contentTypes.map((type) => `\`${type}\``).join(', ') || 'none'}.`,
    admit && '- A rule of its own for what it collects.',
  ].filter((rule) => typeof rule === 'string')
  return rules.length === 0 ? '' : `\nThis host accepts:\n\n${rules.join('\n')}\n`
}
