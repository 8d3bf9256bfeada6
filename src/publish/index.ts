/** Lays out files, folders, streams and updates of sites as outputs, for wallets and scripts. Does not read files, sign or send. */
export { PROFILES, type Profile, type ProfileName } from '../../backend/src/protocol/profile.js'
export type { FolderEntry } from './content-tree.js'
export {
  DEFAULT_STREAM_CHUNK_SIZE,
  layOut,
  layOutFile,
  layOutStream,
  layOutStreamChunk,
  type PublishFile,
  type StreamOptions,
  streamChunkCount,
} from './file.js'
export { type DirectoryFormat, type LaidOutFolder, layOutFolder, type PublishFolder } from './folder.js'
export type { PublishOutput } from './inscribe.js'
export { contentTypeOf, PublishError, type PublishErrorCode } from './inscribe.js'
export type { PublishedContent } from './patch.js'
export { planReturn, planSite, type SiteChange, type SitePlan } from './plan.js'
export { type Published, type PublishedStep, publishedOn } from './published.js'
export { transactionSize } from './transaction-size.js'
