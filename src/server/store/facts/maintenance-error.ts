import { CodedError } from '../../../../backend/src/protocol/coded-error.js'

/** Why a command cannot do something with a store, in one line; partial work has been undone. */
export class MaintenanceError extends CodedError {
  override readonly name = 'MaintenanceError'
  readonly code = 'FAILED'
}
