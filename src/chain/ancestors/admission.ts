/** The result of submitting a transaction to a node. */
export type Admission =
  | { kind: 'admitted'; outputs: number }
  /** Every topic that admits it has it already. */
  | { kind: 'known' }
  /** It is valid, but no topic admits any of it, for the reasons in `codes`. */
  | { kind: 'passed over'; why: string; codes: string[] }
  /** It is invalid or conflicted. */
  | { kind: 'refused'; why: string }
