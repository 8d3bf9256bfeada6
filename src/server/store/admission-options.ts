import type { AdmissionOptions } from '../../../backend/src/graph/admission-rules.js'
import { admissionRules, type OrdinalsPolicy } from '../../../backend/src/graph/topic-rules.js'
import type { Config } from '../config/config.js'
import { advertisementReader } from '../discovery/advertisement.js'

type AdmissionConfig = Pick<
  Config,
  'deployment' | 'maxContentBytes' | 'contentTypes' | 'limits' | 'serverPrivateKey' | 'hostingUrl'
>

export function admissionOptions(config: AdmissionConfig): AdmissionOptions {
  const { deployment, limits } = config
  const advertisements = advertisementReader(config)
  return {
    rules: admissionRules({
      deployment,
      policy: policyOf(config),
      others: advertisements && ((transaction) => advertisements.admitted(transaction)),
    }),
    pending: { maxTransactions: limits.maxPendingTransactions, maxBytes: limits.maxPendingBytes },
  }
}

export function policyOf({ maxContentBytes, contentTypes }: AdmissionConfig): OrdinalsPolicy {
  return { maxContentBytes, ...(contentTypes && { contentTypes }) }
}
