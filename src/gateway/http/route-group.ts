import type { RequestHandler } from 'express'
import type { OperationGroup } from './operation.js'

/** The groups of routes that clients ask for by name; `@1sat/types` has these names, but `image`. */
export type Capability = 'beef' | 'txo' | 'overlay' | 'ordfs' | 'image'

/** Routes that belong together, and what describes them. The OpenAPI document and the capabilities are those of the mounted groups. */
export interface RouteGroup {
  /**
   * What the routes need beside a store that they read. A host of another engine gets those that only read; the others belong to
   * the one that writes, to the operator, or to the process.
   */
  needs: 'reads' | 'writer' | 'operator' | 'process'
  /** Where each of them is: below prefixes of the profile, or at the root (`''`). */
  prefixes: readonly string[]
  /** None of pages, which `docs/spec/http.md` lists. */
  operations: readonly OperationGroup[]
  capability?: Capability
  /** Missing if they are mounted by themselves, or by the handler of another group. */
  handler?: RequestHandler
}
