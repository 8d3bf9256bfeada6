import type { AdmissionOptions } from '../graph/admission-rules.js'
import { admissionRules } from '../graph/topic-rules.js'
import type { HostRules } from '../read/host-index.js'

/** Limits for submissions that nothing depends on: orphans, whose parents may still come. */
const PENDING = { maxTransactions: 100_000, maxBytes: 256 * 1024 * 1024 }

/** The rules by which the index of a host is derived. */
export function admissionBy({ deployment, policy }: HostRules): AdmissionOptions {
  return {
    rules: admissionRules({ deployment, policy }),
    pending: PENDING,
  }
}
