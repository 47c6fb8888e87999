# The queue as a CloudFormation stack under Terraform. `trainmaster deploy --template-out queue.json` uploads the code and
# prints the address of the template that names it; docs/how-to/deploy.md has the steps.

terraform {
  required_version = ">= 1.3"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "template_url" {
  description = "Address of the template, as `trainmaster deploy --template-out` prints it. Another release has another one."
  type        = string

  validation {
    condition     = can(regex("^https://s3\\.[a-z0-9-]+\\.amazonaws\\.com", var.template_url))
    error_message = "Use the https address of the template in S3."
  }
}

variable "parameters" {
  description = "Parameters of the template by name, as texts; the others have their defaults."
  type        = map(string)
}

variable "name" {
  description = "Name of the stack."
  type        = string
  default     = "trainmaster"
}

variable "role_arn" {
  description = "Role with which CloudFormation creates the resources; null for the caller's own permissions."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of the stack and its resources."
  type        = map(string)
  default     = {}
}

resource "aws_cloudformation_stack" "queue" {
  name         = var.name
  template_url = var.template_url
  parameters   = var.parameters
  iam_role_arn = var.role_arn
  tags         = var.tags

  # The template makes roles, and is one of AWS SAM, which CloudFormation expands.
  capabilities = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
}

output "outputs" {
  description = "Outputs of the stack, such as ApiUrl and SubmitterPolicyArn."
  value       = aws_cloudformation_stack.queue.outputs
}

output "api_url" {
  description = "Address of the queue's API, for TRAINMASTER_API_URL."
  value       = aws_cloudformation_stack.queue.outputs["ApiUrl"]
}
