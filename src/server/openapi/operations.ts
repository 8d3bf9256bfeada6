import type { Operation } from '../../gateway/http/operation.js'
import { HOST_OPERATIONS } from './host.js'
import { OPERATOR_OPERATIONS } from './operator.js'
import { OVERLAY_OPERATIONS } from './overlay.js'

export const SERVER_OPERATIONS: Operation[] = [
  ...OVERLAY_OPERATIONS,
  ...OPERATOR_OPERATIONS,
  ...HOST_OPERATIONS,
]
