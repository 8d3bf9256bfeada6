/** What a crawl has done so far. */
export interface CrawlReport {
  mints: number
  transfers: number
  outputs: number
  /** Known before, and followed once more because they were not proven. */
  known: number
  /** Nodes that were spent by what is no mint. */
  deadNodes: number
  /** Ordinals of names that were burnt, or went where no topic takes them. */
  lostNames: number
  /** Transactions at the ends of branches that are in no block yet. */
  unproven: Set<string>
  /** Transactions that place ordinals, and that the source does not know. */
  unknown: Set<string>
  /** Branches that could not be followed, each with its reason. */
  failures: string[]
  /** Why it ended before its end; undefined where it did not. */
  stopped?: 'by signal' | 'at limit' | 'at time limit'
}

export function newReport(): CrawlReport {
  return {
    ...{ mints: 0, transfers: 0, outputs: 0, known: 0, deadNodes: 0, lostNames: 0 },
    ...{ unproven: new Set(), unknown: new Set(), failures: [] },
  }
}
