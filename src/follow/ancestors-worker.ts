export interface AncestorsStatus {
  waiting: number
  fetched: number
  holes: number
  lastError?: { at: number; message: string }
}
