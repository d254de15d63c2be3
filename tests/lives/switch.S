# Coroutines, for amd64 (System V): the registers that a function must leave as they are, on the
# stack of whoever is left.
	.text

# Keeps whoever is left where (%rdi) points to.
	.macro leave_in
	push %rbp
	push %rbx
	push %r12
	push %r13
	push %r14
	push %r15
	mov %rsp, (%rdi)
	.endm

# void lives_switch(void **save, void *load)
	.globl lives_switch
lives_switch:
	leave_in
	mov %rsi, %rsp
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	ret

# void lives_switch_behind_vfork(void **save, struct registers *vfork, long result): continues a
# parent behind its vfork(), with that result.
	.globl lives_switch_behind_vfork
lives_switch_behind_vfork:
	leave_in
	mov %rdx, %rax
	mov 0(%rsi), %rbx
	mov 8(%rsi), %rbp
	mov 16(%rsi), %r12
	mov 24(%rsi), %r13
	mov 32(%rsi), %r14
	mov 40(%rsi), %r15
	mov 48(%rsi), %rsp
	jmp *56(%rsi)

# pid_t vfork(void), fork(void), kernel_fork_into(int cgroup): saves the registers as they are at the
# call, and becomes the child, on the parent's stack.
	.globl __wrap_vfork
	.globl __wrap_fork
	.globl __wrap_kernel_fork_into
__wrap_vfork:
__wrap_fork:
	mov $-1, %edi
__wrap_kernel_fork_into:
	mov %edi, %esi
	sub $72, %rsp
	mov %rbx, 0(%rsp)
	mov %rbp, 8(%rsp)
	mov %r12, 16(%rsp)
	mov %r13, 24(%rsp)
	mov %r14, 32(%rsp)
	mov %r15, 40(%rsp)
	lea 80(%rsp), %rax
	mov %rax, 48(%rsp)
	mov 72(%rsp), %rax
	mov %rax, 56(%rsp)
	mov %rsp, %rdi
	call lives_vfork
	add $72, %rsp
	cltq
	ret

# The first return address of a coroutine.
	.globl lives_begin
lives_begin:
	call lives_enter
	hlt
	.section .note.GNU-stack,"",@progbits
